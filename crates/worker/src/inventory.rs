//! The inventory of a worker: the inputs that it holds.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use proto::v1;

/// Digests in one message.
const PAGE_MAX: usize = 1_000;

/// Lists the inputs of a worker.
pub trait Inventory: Send + Sync + 'static {
    /// The digests of all inputs. May block. The worker calls it after every connection and
    /// periodically, and sends the changes to the server.
    fn digests(&self) -> io::Result<BTreeSet<String>>;
}

/// A directory with one file for each input, named by its digest.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The directory at `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl Inventory for Directory {
    fn digests(&self) -> io::Result<BTreeSet<String>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let mut digests = BTreeSet::new();
        for entry in entries {
            // A hidden file is incomplete.
            let name = entry?.file_name().into_string().ok();
            digests.extend(name.filter(|name| !name.starts_with('.')));
        }
        Ok(digests)
    }
}

/// The inventory as the server knows it in this session.
#[derive(Debug)]
pub(crate) struct Shown {
    known: BTreeSet<String>,
    digests_max: usize,
    is_first: bool,
}

impl Shown {
    pub(crate) fn new(digests_max: usize) -> Self {
        Self { known: BTreeSet::new(), digests_max, is_first: true }
    }

    /// The pages that update the server to `digests`: all at first, then the changes. Digests over
    /// the limit are left out, always the same ones.
    pub(crate) fn pages(&mut self, digests: BTreeSet<String>) -> Vec<v1::Inventory> {
        let digests: BTreeSet<String> = digests.into_iter().take(self.digests_max).collect();
        let added: Vec<String> = digests.difference(&self.known).cloned().collect();
        let removed: Vec<String> = self.known.difference(&digests).cloned().collect();
        let is_full = std::mem::take(&mut self.is_first);
        self.known = digests;
        // Removals come first, so that the server never has more than the limit.
        let mut pages: Vec<v1::Inventory> = Vec::new();
        let page = |added: &[String], removed: &[String]| v1::Inventory {
            added: added.to_vec(),
            removed: removed.to_vec(),
            more: true,
            full: false,
        };
        pages.extend(removed.chunks(PAGE_MAX).map(|removed| page(&[], removed)));
        pages.extend(added.chunks(PAGE_MAX).map(|added| page(added, &[])));
        if is_full && pages.is_empty() {
            pages.push(page(&[], &[]));
        }
        if let Some(first) = pages.first_mut() {
            first.full = is_full;
        }
        if let Some(last) = pages.last_mut() {
            last.more = false;
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(range: std::ops::Range<usize>) -> BTreeSet<String> {
        range.map(|n| format!("{n:06}")).collect()
    }

    #[test]
    fn first_pages_have_all_digests_and_later_ones_changes() {
        let mut shown = Shown::new(10_000);
        let pages = shown.pages(digests(0..2_500));
        let shape: Vec<_> =
            pages.iter().map(|page| (page.full, page.added.len(), page.more)).collect();
        assert_eq!(shape, [(true, 1_000, true), (false, 1_000, true), (false, 500, false)]);
        assert_eq!(shown.pages(digests(0..2_500)), []);
        let pages = shown.pages(digests(1..2_502));
        assert_eq!(pages[0].removed, ["000000"]);
        assert_eq!(pages[1].added, ["002500", "002501"]);
        assert!(pages[0].more && !pages[1].more && !pages[0].full);
    }

    #[test]
    fn empty_inventory_is_sent() {
        let pages = Shown::new(10).pages(BTreeSet::new());
        assert!(pages.len() == 1 && pages[0].full && !pages[0].more);
    }

    #[test]
    fn digests_over_the_limit_are_left_out() {
        let mut shown = Shown::new(3);
        assert_eq!(shown.pages(digests(5..9))[0].added.len(), 3);
        let pages = shown.pages(digests(4..9));
        assert_eq!(
            (&pages[0].removed[..], &pages[1].added[..]),
            (&["000007".to_owned()][..], &["000004".to_owned()][..])
        );
    }

    #[test]
    fn missing_inventory_directory_is_empty() {
        assert!(Directory::new("there/is/no/such").digests().unwrap().is_empty());
    }
}
