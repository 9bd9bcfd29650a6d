//! The screen, as text.

use proto::v1;

use super::layout::{Part, Row, fit};
use super::trail::Trail;
use super::{View, shares};
use crate::{print, view as words};

/// Heights of a bar, from nothing to all.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The column in which numbers begin.
const LABEL: usize = 18;
/// What a detail begins with.
const DETAIL: &str = "      ";
/// Pools, and tenants, that are shown in any case: those that are busiest tell the most.
const ROWS_LEAST: usize = 2;
/// Rows of each table; more would be a list.
const ROWS_MAX: usize = 20;
/// Slowest waits that are shown in any case: they are what people look for.
const SLOWEST_LEAST: usize = 3;
/// A terminal of fewer lines has room for the last hour alone.
const TALL: usize = 32;
/// The minutes of an hour.
const MINUTES: i64 = 60;

/// All of it, in lines of at most `width` columns, and in at most `height` lines.
pub(super) fn screen(view: &View, trail: &Trail, (width, height): (usize, usize)) -> String {
    let mut lines = head(view, trail);
    lines.extend(hour(&view.load, width));
    if trail.queued.len() > 1 && height >= TALL {
        let since = |numbers: Vec<u64>, what: &str| row(what, &bars(&numbers, width));
        lines.push(since(trail.queued.iter().copied().collect(), "waiting, lately"));
        lines.push(since(trail.succeeded.iter().copied().collect(), "done, lately"));
    }
    lines.push(String::new());
    let parts = [pools(&view.load), tenants(&view.tenants), slowest(&view.load, width)];
    lines.extend(fit(&parts, height.saturating_sub(lines.len())));
    let lines = lines.iter().map(|line| cut(line, width));
    lines.collect::<Vec<String>>().join("\n") + "\n"
}

/// As much of a line as fits.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
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
        row(
            label,
            &format!("{}  most {}", bars_of(numbers, width.saturating_sub(12)), most(numbers)),
        )
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

fn pools(load: &v1::LoadResponse) -> Part {
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
        return nothing("no workers; start one with `maitre work --exec`");
    }
    let (title, lines) = titled(&["pool", "workers", "slots", "in use"], rows, &[1, 2]);
    Part::new(title, lines.map(plain).collect(), (ROWS_LEAST, ROWS_MAX))
}

fn tenants(all: &[v1::TenantStatus]) -> Part {
    let mut busy: Vec<&v1::TenantStatus> = all.iter().collect();
    busy.sort_by_key(|one| (std::cmp::Reverse(one.running + one.queued), one.name.clone()));
    let rows = busy.iter().map(|tenant| {
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
    let header = ["tenant", "wait", "run", "slots", "share", "target"];
    let (title, lines) = titled(&header, rows.collect(), &[1, 2, 3, 4, 5]);
    Part::new(title, lines.map(plain).collect(), (ROWS_LEAST, ROWS_MAX))
}

/// What matters most stands first in a line, and the detail in lines of its own.
fn slowest(load: &v1::LoadResponse, width: usize) -> Part {
    if load.slowest.is_empty() {
        return nothing("no job waits");
    }
    let rows = load.slowest.iter().map(|one| {
        vec![
            one.id.to_string(),
            words::length((load.now_ms - one.ready_ms).max(0) / 1_000),
            if one.alike == 0 { String::new() } else { format!("+{}", one.alike) },
            one.reason.clone(),
            one.tenant.clone(),
            one.r#type.clone(),
        ]
    });
    let header = ["job", "waits", "alike", "reason", "tenant", "type"];
    let (title, lines) = titled(&header, rows.collect(), &[0, 2]);
    let details = load.slowest.iter().map(|one| below(&one.detail, width));
    let rows = lines.zip(details).map(|(line, below)| Row { line, below });
    Part::new(title, rows.collect(), (SLOWEST_LEAST, ROWS_MAX))
}

/// The title of a table, and its rows, a line each.
fn titled(
    header: &[&str],
    rows: Vec<Vec<String>>,
    numbers: &[usize],
) -> (String, impl Iterator<Item = String>) {
    let table = print::table_within(u16::MAX, header, rows, numbers);
    let mut lines = table.lines().map(str::to_owned).collect::<Vec<String>>().into_iter();
    (lines.next().unwrap_or_default(), lines)
}

const fn plain(line: String) -> Row {
    Row { line, below: Vec::new() }
}

fn nothing(told: &str) -> Part {
    Part::new(told.to_owned(), Vec::new(), (0, 0))
}

/// A detail, in lines that begin further to the right than those of rows.
fn below(detail: &str, width: usize) -> Vec<String> {
    let detail = detail.split_whitespace().collect::<Vec<&str>>().join(" ");
    // Room for the mark of what is left out.
    let options = textwrap::Options::new(width.saturating_sub(2).max(DETAIL.len() + 1))
        .initial_indent(DETAIL)
        .subsequent_indent(DETAIL)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(&detail, options).into_iter().map(|line| line.trim_end().to_owned()).collect()
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

    fn view(n_pools: u32, n_tenants: u64, n_waits: u64) -> View {
        let pool = |n: u32| v1::PoolLoad { pool: format!("pool-{n}"), ..v1::PoolLoad::default() };
        let tenant = |n: u64| v1::TenantStatus {
            name: format!("tenant-{n}"),
            queued: n,
            weight: 1.0,
            ..v1::TenantStatus::default()
        };
        let waiting = |id: u64| v1::Waiting {
            id,
            tenant: "somebody-with-a-rather-long-name".to_owned(),
            r#type: "a-type-with-a-rather-long-name".to_owned(),
            reason: "workers-full".to_owned(),
            detail: format!("because of {}this", "one thing and another and ".repeat(7)),
            ..v1::Waiting::default()
        };
        View {
            server: "127.0.0.1:7070".to_owned(),
            policy: "balanced".to_owned(),
            load: v1::LoadResponse {
                pools: (0..n_pools).map(pool).collect(),
                slowest: (0..n_waits).map(waiting).collect(),
                ..v1::LoadResponse::default()
            },
            tenants: (0..n_tenants).map(tenant).collect(),
            n_succeeded: 0,
        }
    }

    /// What is shown of a view in so many lines, after some time: none is too long, and there are
    /// not too many.
    fn shown(view: &View, height: usize) -> String {
        let mut trail = Trail::default();
        trail.add(view);
        trail.add(view);
        let screen = screen(view, &trail, (80, height));
        assert!(screen.lines().count() <= height, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        screen
    }

    fn count(screen: &str, words: &str) -> usize {
        screen.matches(words).count()
    }

    #[test]
    fn a_small_terminal_shows_some_of_everything_and_three_waits_with_their_reasons() {
        let screen = shown(&view(4, 13, 10), 24);
        assert_eq!(screen.lines().count(), 24, "{screen}");
        assert!(count(&screen, "workers-full") >= 3, "{screen}");
        assert!(count(&screen, "because of") >= 3, "{screen}");
        let n_pools = count(&screen, "\n pool-");
        let n_tenants = count(&screen, "\n tenant-");
        assert!(n_pools >= 2 && n_tenants >= 2, "{screen}");
        assert!(screen.contains(&format!("… {} more", 4 - n_pools)), "{screen}");
        assert!(screen.contains(&format!("… {} more", 13 - n_tenants)), "{screen}");
        assert!(screen.contains("… 7 more"), "{screen}");
    }

    #[test]
    fn what_some_do_not_need_others_get() {
        let screen = shown(&view(1, 3, 3), 24);
        assert_eq!(count(&screen, "workers-full"), 3, "{screen}");
        assert!(count(&screen, "\n tenant-") == 3 && !screen.contains("more"), "{screen}");
        let screen = shown(&view(1, 1, 4), 24);
        assert_eq!(count(&screen, "workers-full"), 4, "{screen}");
        let screen = shown(&view(1, 30, 0), 24);
        assert!(count(&screen, "\n tenant-") >= 10 && screen.contains("no job waits"), "{screen}");
    }

    #[test]
    fn a_tall_terminal_shows_all_of_what_a_small_one_cuts() {
        let screen = shown(&view(4, 13, 5), 50);
        assert!(count(&screen, "\n pool-") == 4 && count(&screen, "\n tenant-") == 13, "{screen}");
        assert!(count(&screen, "workers-full") == 5 && !screen.contains("more"), "{screen}");
        assert!(screen.contains("waiting, lately") && screen.contains("and this\n"), "{screen}");
    }

    #[test]
    fn where_hardly_anything_fits_the_waits_come_first() {
        for height in 0..24 {
            let screen = screen(&view(4, 13, 10), &Trail::default(), (80, height));
            assert!(screen.lines().count() <= height.max(7), "{height}: {screen}");
            assert!(height < 14 || count(&screen, "workers-full") >= 1, "{height}: {screen}");
        }
    }
}
