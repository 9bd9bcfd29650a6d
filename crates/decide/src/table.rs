//! Dense tables with an index type each, so that a worker's index cannot be used for a job.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A place in a [`Table`].
pub(crate) trait Ix: Copy + Ord {
    fn new(at: usize) -> Self;
    fn at(self) -> usize;
}

macro_rules! ix {
    ($(#[$doc:meta])* $ix:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $ix(u32);

        impl Ix for $ix {
            fn new(at: usize) -> Self {
                Self(u32::try_from(at).expect("a table has fewer than 2^32 entries"))
            }

            fn at(self) -> usize {
                usize::try_from(self.0).expect("a usize holds a u32")
            }
        }
    };
}

ix!(
    /// A waiting job.
    JobIx
);
ix!(
    /// A running attempt.
    AttemptIx
);
ix!(
    /// A job's entry in the register.
    EntryIx
);
ix!(
    /// A worker.
    WorkerIx
);
ix!(
    /// A tenant.
    TenantIx
);
ix!(
    /// Pool, type and needs: what decides which workers could ever run a job.
    FitIx
);
ix!(
    /// A fit with slots and amounts.
    ClassIx
);
ix!(
    /// The workers that could ever run some jobs.
    AudienceIx
);
ix!(
    /// Jobs with the same audience that take about as much room.
    BerthIx
);
ix!(
    /// Waiting jobs of one class, tenant, mode and stage, in their order.
    LineIx
);
ix!(
    /// Lines of one berth that only the keys of their first jobs tell apart.
    LaneIx
);
ix!(
    /// An interned name: of a type, pool, amount, hint or resource.
    NameIx
);

/// A vector that only its own index type can index; freed places are used again.
#[derive(Clone, Debug)]
pub(crate) struct Table<I, T> {
    rows: Vec<Option<T>>,
    free: Vec<I>,
    len: usize,
    index: PhantomData<I>,
}

impl<I: Ix, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), free: Vec::new(), len: 0, index: PhantomData }
    }
}

impl<I: Ix, T> Table<I, T> {
    pub(crate) fn insert(&mut self, row: T) -> I {
        self.len += 1;
        if let Some(ix) = self.free.pop() {
            self.rows[ix.at()] = Some(row);
            return ix;
        }
        self.rows.push(Some(row));
        I::new(self.rows.len() - 1)
    }

    /// Where the next row will be.
    pub(crate) fn next(&self) -> I {
        self.free.last().copied().unwrap_or_else(|| I::new(self.rows.len()))
    }

    /// Takes the row out. Its place is used again only after [`Table::reuse`].
    pub(crate) fn take(&mut self, ix: I) -> T {
        self.len -= 1;
        self.rows[ix.at()].take().expect("a row is taken once")
    }

    pub(crate) fn reuse(&mut self, ix: I) {
        debug_assert!(self.rows[ix.at()].is_none(), "a place in use is not free");
        self.free.push(ix);
    }

    pub(crate) fn remove(&mut self, ix: I) -> T {
        let row = self.take(ix);
        self.reuse(ix);
        row
    }

    pub(crate) fn get(&self, ix: I) -> Option<&T> {
        self.rows.get(ix.at()).and_then(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, ix: I) -> Option<&mut T> {
        self.rows.get_mut(ix.at()).and_then(Option::as_mut)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(at, row)| row.as_ref().map(|row| (I::new(at), row)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        let rows = self.rows.iter_mut().enumerate();
        rows.filter_map(|(at, row)| row.as_mut().map(|row| (I::new(at), row)))
    }

    pub(crate) fn indices(&self) -> Vec<I> {
        self.iter().map(|(ix, _)| ix).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl<I: Ix, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, ix: I) -> &T {
        self.rows[ix.at()].as_ref().expect("an index points at a row")
    }
}

impl<I: Ix, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, ix: I) -> &mut T {
        self.rows[ix.at()].as_mut().expect("an index points at a row")
    }
}

/// Something for some names: found in two steps, where a tree would take many.
#[derive(Clone, Debug)]
pub(crate) struct ByName<T> {
    /// Places in `values`, by name.
    places: Vec<Option<u32>>,
    values: Vec<T>,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { places: Vec::new(), values: Vec::new() }
    }
}

impl<T> ByName<T> {
    pub(crate) fn get(&self, name: NameIx) -> Option<&T> {
        self.values.get(self.place(name)?)
    }

    pub(crate) fn get_or_insert_with(&mut self, name: NameIx, make: impl FnOnce() -> T) -> &mut T {
        let place = self.place(name).unwrap_or_else(|| {
            self.values.push(make());
            if self.places.len() <= name.at() {
                self.places.resize(name.at() + 1, None);
            }
            let place = self.values.len() - 1;
            self.places[name.at()] =
                Some(u32::try_from(place).expect("there are fewer than 2^32 names"));
            place
        });
        &mut self.values[place]
    }

    /// All of them, in the order in which they came: sort them before anybody sees them.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    fn place(&self, name: NameIx) -> Option<usize> {
        let place = self.places.get(name.at()).copied().flatten()?;
        Some(usize::try_from(place).expect("a usize holds a u32"))
    }
}
