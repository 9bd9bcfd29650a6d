//! Whose turn it is, with numbers.

use model::{Check, Fixed, Millis, Reason, TenantId};

use crate::detail::{listed, plural, whole};
use crate::dues::ShareStatus;
use crate::rivals::Rivals;
use crate::table::{JobIx, TenantIx};
use crate::world::World;

/// Shares of so many tenants are compared at most, those with most jobs in line.
const COMPARED_MAX: usize = 100;
/// So many tenants are named.
const NAMED_MAX: usize = 3;

/// A tenant whose jobs could take the same workers.
struct Rival {
    id: TenantId,
    n_all: usize,
    n_first: usize,
}

impl World {
    /// Who gets what frees, if jobs of other tenants wait for the same workers; `None` if none do.
    pub(super) fn whose_turn(&self, ix: JobIx) -> Option<Check> {
        let own = self.queue.jobs[ix].tenant;
        let before = self.rivals_before(ix)?;
        let others = before.iter().filter(|(tenant, rivals)| **tenant != own && rivals.n_all > 0);
        let rival = |(tenant, rivals): (&TenantIx, &Rivals)| Rival {
            id: self.tenants[*tenant].tenant.id.clone(),
            n_all: rivals.n_all,
            n_first: rivals.n_first,
        };
        let mut others: Vec<Rival> = others.map(rival).collect();
        others.sort_by(|one, two| (two.n_all, &one.id).cmp(&(one.n_all, &two.id)));
        if others.is_empty() {
            return None;
        }
        let id = &self.tenants[own].tenant.id;
        match self.share_of(id).filter(|share| share.competes) {
            Some(share) => Some(self.by_share(id, share, &others)),
            None => by_order(others),
        }
    }

    fn by_share(&self, id: &TenantId, own: ShareStatus, others: &[Rival]) -> Check {
        let shares = others.iter().take(COMPARED_MAX).filter_map(|rival| {
            let share = self.share_of(&rival.id)?;
            Some((share.behind, &rival.id, share))
        });
        let furthest = shares.max_by(|one, two| (one.0, two.1).cmp(&(two.0, one.1)));
        let first = furthest.filter(|(behind, ..)| *behind > own.behind);
        let mut numbers = vec![
            ("slots", whole(own.slots)),
            ("slots_shared", whole(own.slots_shared)),
            ("due", own.due),
            ("behind_s", seconds(own.behind)),
        ];
        let mut tenants = vec![id.clone()];
        let who = if let Some((behind, first, other)) = first {
            numbers.push(("first_slots", whole(other.slots)));
            numbers.push(("first_due", other.due));
            numbers.push(("first_behind_s", seconds(behind)));
            tenants.push(first.clone());
            let by = Fixed::thousandths(behind.0.saturating_sub(own.behind.0));
            format!(
                "{first} goes first because it is {by} s further behind its share (it has {} and \
                 is due {})",
                other.slots, other.due
            )
        } else {
            let names: Vec<&TenantId> =
                others.iter().take(NAMED_MAX).map(|rival| &rival.id).collect();
            let said: Vec<String> = names.iter().map(ToString::to_string).collect();
            tenants.extend(names.into_iter().cloned());
            let is_even = furthest.is_some_and(|(behind, ..)| behind == own.behind);
            let how = if is_even {
                "as far behind its share as"
            } else {
                "further behind its share than"
            };
            format!("it is {how} {}", listed(&said, others.len()))
        };
        let slots_shared = plural(own.slots_shared, "slot");
        let detail =
            format!("{id} has {} of {slots_shared} and is due {}; {who}", own.slots, own.due);
        Check {
            numbers: numbers.into_iter().collect(),
            tenants,
            ..Check::new(Reason::Outranked, detail)
        }
    }
}

/// Where tenants do not share: whose jobs stand before it.
fn by_order(mut others: Vec<Rival>) -> Option<Check> {
    others.retain(|rival| rival.n_first > 0);
    others.sort_by(|one, two| (two.n_first, &one.id).cmp(&(one.n_first, &two.id)));
    let n_first = others.iter().map(|rival| rival.n_first).sum::<usize>();
    if n_first == 0 {
        return None;
    }
    let some: Vec<&Rival> = others.iter().take(NAMED_MAX).collect();
    let names: Vec<String> = some
        .iter()
        .map(|rival| format!("{} of tenant {}", plural(rival.n_first, "job"), rival.id))
        .collect();
    let names = match others.len() - some.len() {
        0 => listed(&names, names.len()),
        n_more => format!("{} and jobs of {}", names.join(", "), plural(n_more, "other tenant")),
    };
    let go = if n_first == 1 { "goes" } else { "go" };
    let detail = format!("{names} {go} first, by the order of jobs");
    Some(Check {
        numbers: [("jobs_of_others_first", whole(n_first))].into(),
        tenants: some.into_iter().map(|rival| rival.id.clone()).collect(),
        ..Check::new(Reason::Outranked, detail)
    })
}

fn seconds(Millis(ms): Millis) -> Fixed {
    Fixed::thousandths(ms)
}
