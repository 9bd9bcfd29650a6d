//! The screen, as text.

use proto::v1;

use super::trail::Trail;
use super::{View, shares};
use crate::{print, view as words};

/// Heights of a bar, from nothing to all.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The column in which numbers begin.
const LABEL: usize = 18;
/// The minutes of an hour.
const MINUTES: i64 = 60;

/// All of it, in lines of at most `width` columns.
pub(super) fn screen(view: &View, trail: &Trail, width: usize) -> String {
    let mut lines = head(view, trail);
    lines.extend(hour(&view.load, width));
    if trail.queued.len() > 1 {
        let since = |numbers: Vec<u64>, what: &str| row(what, &bars(&numbers, width));
        lines.push(since(trail.queued.iter().copied().collect(), "waiting, lately"));
        lines.push(since(trail.succeeded.iter().copied().collect(), "done, lately"));
    }
    let mut text = lines.join("\n");
    for table in [pools(&view.load), tenants(&view.tenants), slowest(&view.load)] {
        text.push_str("\n\n");
        text.push_str(table.trim_end());
    }
    let lines = text.lines().map(|line| line.chars().take(width).collect::<String>());
    lines.collect::<Vec<String>>().join("\n") + "\n"
}

fn head(view: &View, trail: &Trail) -> Vec<String> {
    let load = &view.load;
    let waits = load.waits.unwrap_or_default();
    let in_minute = |minutes_ago: i64| {
        let minute = load.now_ms.div_euclid(60_000) - minutes_ago;
        let is_it = |one: &&v1::Minute| one.at_ms.div_euclid(60_000) == minute;
        load.minutes.iter().find(is_it).map_or(0, |one| one.ended)
    };
    let rate = trail.rate.map_or_else(
        || format!("{} this minute, {} the minute before", in_minute(0), in_minute(1)),
        |rate| format!("{rate:.1} a second"),
    );
    vec![
        format!("maitre at {}, policy {}", view.server, view.policy),
        String::new(),
        row("jobs", &format!("{} wait, {} run; done: {rate}", load.queued, load.running)),
        row("waits, 5 min", &waited(waits)),
    ]
}

fn waited(waits: v1::Waits) -> String {
    if waits.n == 0 {
        return "no job started".to_owned();
    }
    let length = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), millis);
    format!(
        "p50 {}  p90 {}  p99 {}  (of {})",
        length(waits.p50_ms),
        length(waits.p90_ms),
        length(waits.p99_ms),
        print::count(waits.n, "job")
    )
}

fn row(label: &str, value: &str) -> String {
    format!("{label:<LABEL$}{value}")
}

/// A length of time that may be short.
fn millis(ms: u64) -> String {
    match i64::try_from(ms / 1_000) {
        Ok(0) => format!("{ms} ms"),
        Ok(seconds) => words::length(seconds),
        Err(_) => "ages".to_owned(),
    }
}

/// The last hour, a bar a minute. What is not known is blank.
fn hour(load: &v1::LoadResponse, width: usize) -> [String; 2] {
    let this_minute = load.now_ms.div_euclid(60_000);
    let at = |minute: i64| load.minutes.iter().find(|one| one.at_ms.div_euclid(60_000) == minute);
    let minutes = (this_minute - MINUTES + 1)..=this_minute;
    let queued: Vec<Option<u64>> = minutes
        .clone()
        .map(|minute| {
            if minute == this_minute {
                Some(load.queued)
            } else {
                at(minute).and_then(|one| one.queued)
            }
        })
        .collect();
    let ended: Vec<Option<u64>> = minutes.map(|minute| at(minute).map(|one| one.ended)).collect();
    let most = |numbers: &[Option<u64>]| numbers.iter().flatten().max().copied().unwrap_or(0);
    let line = |label: &str, numbers: &[Option<u64>]| {
        row(label, &format!("{}  most {}", bars_of(numbers, width - 12), most(numbers)))
    };
    [line("waiting, 1 h", &queued), line("done/min, 1 h", &ended)]
}

fn bars(numbers: &[u64], width: usize) -> String {
    bars_of(&numbers.iter().copied().map(Some).collect::<Vec<Option<u64>>>(), width)
}

/// The newest numbers that fit, as bars of which the highest is the largest.
fn bars_of(numbers: &[Option<u64>], width: usize) -> String {
    let room = width.saturating_sub(LABEL);
    let shown = &numbers[numbers.len().saturating_sub(room)..];
    let most = shown.iter().flatten().max().copied().unwrap_or(0).max(1);
    let bar = |number: &Option<u64>| {
        let Some(number) = number else { return ' ' };
        // Nothing is the lowest bar, and something is higher than that.
        let height = u128::from(*number) * 7;
        let height = usize::try_from(height.div_ceil(u128::from(most))).unwrap_or(7);
        BARS[height.min(7)]
    };
    shown.iter().map(bar).collect()
}

fn pools(load: &v1::LoadResponse) -> String {
    let rows = load.pools.iter().map(|pool| {
        let slots = pool.slots.max(pool.slots_used).max(1);
        let used = usize::try_from(u64::from(pool.slots_used) * 20 / u64::from(slots));
        let used = used.unwrap_or(20);
        vec![
            pool.pool.clone(),
            pool.workers.to_string(),
            format!("{}/{}", pool.slots_used, pool.slots),
            format!("{}{}", "█".repeat(used), "░".repeat(20 - used)),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return "no workers; start one with `maitre work --exec`".to_owned();
    }
    print::table(&["pool", "workers", "slots", "in use"], rows, &[1, 2])
}

fn tenants(all: &[v1::TenantStatus]) -> String {
    let mut busy: Vec<&v1::TenantStatus> = all.iter().collect();
    busy.sort_by_key(|one| (std::cmp::Reverse(one.running + one.queued), one.name.clone()));
    let rows = busy.iter().take(10).map(|tenant| {
        let (share, target) = shares(all, tenant);
        vec![
            tenant.name.clone(),
            tenant.queued.to_string(),
            tenant.running.to_string(),
            tenant.slots.to_string(),
            format!("{share:.0} %"),
            format!("{target:.0} %"),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let header = ["tenant", "wait", "run", "slots", "share", "target"];
    print::table(&header, rows, &[1, 2, 3, 4, 5])
}

fn slowest(load: &v1::LoadResponse) -> String {
    if load.slowest.is_empty() {
        return "no job waits".to_owned();
    }
    let rows = load.slowest.iter().map(|one| {
        vec![
            one.id.to_string(),
            one.tenant.clone(),
            one.r#type.clone(),
            words::length((load.now_ms - one.ready_ms).max(0) / 1_000),
            if one.alike == 0 { String::new() } else { format!("+{}", one.alike) },
            one.reason.clone(),
            one.detail.clone(),
        ]
    });
    let header = ["job", "tenant", "type", "waits", "alike", "reason", "detail"];
    print::table(&header, rows.collect(), &[0, 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_the_largest_number_and_what_is_unknown_is_blank() {
        let numbers = [Some(0), None, Some(1), Some(50), Some(100)];
        assert_eq!(bars_of(&numbers, LABEL + 9), "▁ ▂▅█");
        assert_eq!(bars_of(&numbers, LABEL + 2), "▅█");
        assert_eq!(bars_of(&[Some(0), Some(0)], LABEL + 9), "▁▁");
        assert_eq!(bars_of(&numbers, 3), "");
    }

    #[test]
    fn short_waits_are_told_in_milliseconds() {
        assert_eq!([millis(0), millis(999), millis(61_000)], ["0 ms", "999 ms", "1m 1s"]);
    }
}
