//! Workloads as tables with a header: seconds and words, or milliseconds and numbers.

use model::job::Needs;
use model::{JobId, Millis, Name, TenantId, Timestamp, tenant};

use crate::error::Error;
use crate::gather::{Gathered, Ids};
use crate::terms;
use crate::workload::{Bad, Row};

/// The columns in seconds; `-1` and nothing mean that it is not known.
const SECONDS: &[&str] = &[
    "arrival_s",
    "duration_s",
    "tenant",
    "type",
    "slots",
    "priority",
    "mode",
    "estimate_s",
    "requires",
    "locality",
    "orig_wait_s",
    "id",
];

/// The columns in milliseconds.
const MILLISECONDS: &[&str] =
    &["id", "arrival_ms", "duration_ms", "tenant", "type", "priority", "on_demand"];

/// The rows of a text, and what was left out.
pub(crate) fn rows(name: &str, text: &str, bad: &mut Bad) -> Result<Vec<Row>, Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| Error::form(name, error.to_string()))?;
    let header: Vec<&str> = header.iter().collect();
    let (row, ids): (fn(&_) -> _, _) = if header == SECONDS {
        (in_seconds, Ids::Build)
    } else if header == MILLISECONDS {
        (in_milliseconds, Ids::Job)
    } else {
        let problem = format!(
            "has the columns `{}`; known are `{}` and `{}`",
            header.join(","),
            SECONDS.join(","),
            MILLISECONDS.join(",")
        );
        return Err(Error::form(name, problem));
    };
    let n_columns = header.len();
    let mut gathered = Gathered::new(ids, bad);
    for record in reader.records() {
        let record = record.map_err(|error| Error::form(name, error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let read = if record.len() == n_columns {
            row(&record)
        } else {
            Err(format!("{} columns instead of {n_columns}", record.len()))
        };
        gathered.add(line, read);
    }
    Ok(gathered.rows())
}

fn in_milliseconds(record: &csv::StringRecord) -> Result<Row, String> {
    let whole = |at: usize| -> Result<i64, String> {
        let number = record[at].parse().ok().filter(|number| *number >= 0);
        number.ok_or_else(|| format!("`{}` is `{}`", MILLISECONDS[at], &record[at]))
    };
    Ok(Row {
        id: JobId::new(&record[0]),
        arrival: Timestamp(whole(1)?),
        duration: Millis(whole(2)?),
        requested: None,
        tenant: tenant_of(&record[3]),
        kind: named(&record[4]),
        needs: Needs::new(),
        slots: 1,
        priority: record[5].parse().map_err(|_| format!("`priority` is `{}`", &record[5]))?,
        on_demand: is_on_demand(&record[6], "on_demand", &["0"], "1")?,
        history_key: None,
        label: None,
    })
}

/// What of an id is more than a number: `PR-12#3` is the third build of `PR-12`, and
/// `7:steps30:img8` is one of many of those steps and images.
fn history_key(id: &str) -> Option<Name> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = id.split([':', '#']).collect();
    let told: Vec<&str> = parts.iter().copied().filter(|part| !is_number(part)).collect();
    (!told.is_empty() && told.len() < parts.len()).then(|| Name::new(&told.join("/")))
}

fn in_seconds(record: &csv::StringRecord) -> Result<Row, String> {
    let length = |at: usize| -> Result<Option<i64>, String> {
        let wrong = || format!("`{}` is `{}`", SECONDS[at], &record[at]);
        let seconds: f64 = record[at].parse().map_err(|_| wrong())?;
        let exact = model::Fixed::from_f64(seconds).ok_or_else(wrong)?;
        Ok((exact >= model::Fixed::ZERO).then_some(exact.in_thousandths()))
    };
    let known = |at: usize| length(at)?.ok_or_else(|| format!("no `{}`", SECONDS[at]));
    let slots = record[4].parse().ok().filter(|slots: &u32| *slots > 0);
    let slots = slots.ok_or_else(|| format!("`slots` is `{}`", &record[4]))?;
    Ok(Row {
        id: JobId::new(&record[11]),
        arrival: Timestamp(known(0)?),
        duration: Millis(known(1)?),
        requested: length(7)?.filter(|estimate| *estimate > 0).map(Millis),
        tenant: tenant_of(&record[2]),
        kind: named(&record[3]),
        needs: terms::needs(&record[8]),
        slots,
        priority: record[5].parse().map_err(|_| format!("`priority` is `{}`", &record[5]))?,
        on_demand: is_on_demand(&record[6], "mode", &["", "batch"], "on_demand")?,
        history_key: history_key(&record[11]),
        label: named(&record[9]),
    })
}

/// Whether a person waits: a column has one word for it, and others for that nobody does.
fn is_on_demand(text: &str, column: &str, no: &[&str], yes: &str) -> Result<bool, String> {
    if text != yes && !no.contains(&text) {
        return Err(format!("`{column}` is `{text}`"));
    }
    Ok(text == yes)
}

fn tenant_of(text: &str) -> TenantId {
    TenantId::new(if text.is_empty() { tenant::TENANT_DEFAULT } else { text })
}

fn named(text: &str) -> Option<Name> {
    (!text.is_empty()).then(|| Name::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Row>, Bad) {
        let mut bad = Bad::default();
        (rows("w", text, &mut bad).unwrap(), bad)
    }

    #[test]
    fn milliseconds_are_read() {
        let (rows, bad) = read(&format!("{}\n0,118,33760,1,E,3,1\n", MILLISECONDS.join(",")));
        assert_eq!(bad.count, 0);
        assert_eq!((rows[0].arrival, rows[0].duration), (Timestamp(118), Millis(33_760)));
        assert_eq!((rows[0].kind.clone(), rows[0].priority), (Some(Name::new("E")), 3));
        assert!(rows[0].on_demand);
    }

    #[test]
    fn seconds_are_read_and_minus_one_is_unknown() {
        let text = "95037,1439.3,hadoop,a/b,2,1,on_demand,-1,gpu&V1|V2,x,-1,PR-2#3";
        let (rows, bad) = read(&format!("{}\n{text}\n", SECONDS.join(",")));
        assert_eq!(bad.count, 0);
        let row = &rows[0];
        assert_eq!((row.arrival, row.duration), (Timestamp(95_037_000), Millis(1_439_300)));
        assert_eq!((row.requested, row.slots, row.needs.len()), (None, 2, 2));
    }

    #[test]
    fn bad_rows_are_counted_and_named_by_line() {
        let text = format!("{}\n0,x,1,1,E,3,1\n1,2\n", MILLISECONDS.join(","));
        let (rows, bad) = read(&text);
        assert_eq!((rows.len(), bad.count), (0, 2));
        assert_eq!(bad.told, ["line 2: `arrival_ms` is `x`", "line 3: 2 columns instead of 7"]);
    }

    fn seconds(rows: &[&str]) -> (Vec<Row>, Bad) {
        read(&format!("{}\n{}\n", SECONDS.join(","), rows.join("\n")))
    }

    #[test]
    fn a_job_takes_a_slot_and_has_a_known_mode() {
        let (rows, bad) = seconds(&[
            "0,1,a,t,0,0,batch,-1,,,-1,1",
            "0,1,a,t,-1,0,batch,-1,,,-1,2",
            "0,1,a,t,1,0,weird,-1,,,-1,3",
            "0,1,a,t,1,0,batch,-1,,,-1,4",
            "0,1,a,t,1,0,,-1,,,-1,5",
        ]);
        assert_eq!((rows.len(), bad.count), (2, 3));
        let told =
            ["line 2: `slots` is `0`", "line 3: `slots` is `-1`", "line 4: `mode` is `weird`"];
        assert_eq!(bad.told, told);
        let (_, bad) = read(&format!("{}\n0,0,1,a,t,0,2\n", MILLISECONDS.join(",")));
        assert_eq!(bad.told, ["line 2: `on_demand` is `2`"]);
    }

    #[test]
    fn an_id_is_there_once_but_for_stages_of_a_build() {
        let (rows, bad) = seconds(&[
            "5,1,a,test,1,0,,-1,,,-1,PR-1#2",
            "5,1,a,lint,1,0,,-1,,,-1,PR-1#2",
            "9,1,b,test,1,0,,-1,,,-1,PR-1#2",
            "5,1,a,lint,1,0,,-1,,,-1,PR-1#2",
            "6,1,a,docs,1,0,,-1,,,-1,PR-1#2",
        ]);
        assert_eq!(rows.len(), 3);
        let told = ["line 5: job `PR-1#2` is there twice", "line 6: job `PR-1#2` is there twice"];
        assert_eq!(bad.told, told);
        let text = format!("{}\n7,0,1,a,t,0,0\n7,0,1,b,u,0,1\n", MILLISECONDS.join(","));
        assert_eq!(read(&text).1.told, ["line 3: job `7` is there twice"]);
    }

    #[test]
    fn other_columns_are_refused() {
        let error = rows("w", "a,b\n1,2\n", &mut Bad::default()).unwrap_err();
        assert!(error.to_string().starts_with("`w` has the columns `a,b`; known are `arrival_s,"));
    }
}
