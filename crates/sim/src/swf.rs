//! The Standard Workload Format: 18 numbers a line, comments after `;`.

use model::job::Needs;
use model::{JobId, Millis, Name, TenantId, Timestamp};

use crate::gather::{Gathered, Ids};
use crate::workload::{Bad, Row};

/// What the numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As the format says: tenants are groups.
    Plain,
    /// The mixed workload that is made of the log of KTH: three tenants, priorities by user, and
    /// a person waits for what takes no more than a quarter of an hour.
    KthM,
}

/// Tenants of [`Reading::KthM`].
const KTH_TENANTS: i64 = 3;
/// Up to this requested time a person waits.
const KTH_ON_DEMAND_S_MAX: i64 = 900;

/// The rows of a text, and what was left out.
pub(crate) fn rows(text: &str, reading: Reading, bad: &mut Bad) -> Vec<Row> {
    let mut gathered = Gathered::new(Ids::Job, bad);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        gathered.add(number, row(line, reading));
    }
    gathered.rows()
}

fn row(line: &str, reading: Reading) -> Result<Row, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() != 18 {
        return Err(format!("it has {} of 18 fields", words.len()));
    }
    // Some logs have fractions of seconds where whole ones are meant.
    let field = |number: usize| -> Result<i64, String> {
        let word = words[number - 1];
        let whole = word.split('.').next().unwrap_or(word);
        whole.parse().map_err(|_| format!("field {number} is `{word}`"))
    };
    let known = |number: usize| field(number).map(|value| (value >= 0).then_some(value));
    let arrival_s = known(2)?.ok_or("no submit time")?;
    let run_s = known(4)?.ok_or("no run time")?;
    let slots = field(8)?.max(0);
    let slots = if slots > 0 { slots } else { field(5)? };
    let slots = u32::try_from(slots).ok().filter(|slots| *slots > 0).ok_or("no processors")?;
    let requested_s = known(9)?.filter(|requested_s| *requested_s > 0);
    let (user, group) = (field(12)?, field(13)?);
    let plain = Row {
        id: JobId::new(words[0]),
        arrival: Timestamp(arrival_s.saturating_mul(1_000)),
        duration: Millis::from_secs(run_s),
        requested: requested_s.map(Millis::from_secs),
        tenant: TenantId::new(&group.to_string()),
        kind: None,
        needs: Needs::new(),
        slots,
        priority: 0,
        on_demand: false,
        // What a user runs is like what the same user ran before.
        history_key: Some(Name::new(words[11])),
        label: None,
    };
    Ok(match reading {
        Reading::Plain => plain,
        Reading::KthM => {
            let requested_s = requested_s.ok_or("no requested time")?;
            let priority = (user * 7).rem_euclid(11);
            Row {
                duration: Millis::from_secs(run_s.min(requested_s)),
                tenant: TenantId::new(&group.rem_euclid(KTH_TENANTS).to_string()),
                priority: i32::try_from(priority).map_err(|_| "no user")?,
                on_demand: requested_s <= KTH_ON_DEMAND_S_MAX,
                ..plain
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "7 100 5 60 4 -1 -1 8 900 -1 1 3 5 -1 -1 -1 -1 -1";

    fn read(text: &str, reading: Reading) -> (Vec<Row>, Bad) {
        let mut bad = Bad::default();
        (rows(text, reading, &mut bad), bad)
    }

    #[test]
    fn a_line_is_a_job() {
        let (rows, bad) = read(&format!("; a comment\n\n{LINE}\n"), Reading::Plain);
        assert_eq!((rows.len(), bad.count), (1, 0));
        let row = &rows[0];
        assert_eq!((row.arrival, row.duration), (Timestamp(100_000), Millis(60_000)));
        assert_eq!((row.slots, row.requested), (8, Some(Millis(900_000))));
        assert_eq!(row.tenant, TenantId::new("5"));
    }

    #[test]
    fn the_log_of_kth_is_read_with_tenants_priorities_and_people() {
        let (rows, _) = read(LINE, Reading::KthM);
        let row = &rows[0];
        assert_eq!((row.tenant.clone(), row.priority), (TenantId::new("2"), 10));
        assert!(row.on_demand);
    }

    #[test]
    fn processors_that_nobody_asked_for_are_those_that_were_used() {
        let (rows, _) = read("1 0 0 9 4 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1", Reading::Plain);
        assert_eq!((rows[0].slots, rows[0].requested), (4, None));
    }

    #[test]
    fn bad_lines_are_counted_and_named() {
        let text = "1 2 3\n1 0 0 -1 4 -1 -1 4 9 -1 1 1 1 -1 -1 -1 -1 -1\n";
        let (rows, bad) = read(text, Reading::Plain);
        assert_eq!((rows.len(), bad.count), (0, 2));
        assert_eq!(bad.told, ["line 1: it has 3 of 18 fields", "line 2: no run time"]);
    }

    #[test]
    fn a_number_is_of_one_job() {
        let of_another = LINE.replace(" 3 5 ", " 4 6 ");
        let (rows, bad) = read(&format!("{LINE}\n{of_another}\n"), Reading::Plain);
        assert_eq!((rows.len(), bad.count), (1, 1));
        assert_eq!(bad.told, ["line 2: job `7` is there twice"]);
    }
}
