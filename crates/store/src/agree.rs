//! Inconsistencies that no SQL store may contain. Each is a query that counts its occurrences.
//!
//! Both sides of a sum are compared, because a job that counts nothing may still have rows.

pub(crate) const PROBLEMS: &[(&str, &str)] = &[
    (
        "jobs that are both finished and not",
        "SELECT count(*) FROM jobs j JOIN finished f ON f.id = j.id",
    ),
    (
        "jobs that count those they wait for wrongly",
        "SELECT count(*) FROM jobs j LEFT JOIN (SELECT waiter, count(*) AS n_rows FROM waits \
         GROUP BY waiter) w ON w.waiter = j.id WHERE j.n_blockers <> coalesce(w.n_rows, 0)",
    ),
    (
        "jobs that count those that wait for them wrongly",
        "SELECT count(*) FROM jobs j LEFT JOIN (SELECT blocker, count(*) AS n_rows FROM waits \
         GROUP BY blocker) w ON w.blocker = j.id WHERE j.n_dependents <> coalesce(w.n_rows, 0)",
    ),
    (
        "waits for a job that is not there",
        "SELECT count(*) FROM waits w WHERE \
         NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = w.blocker) \
         OR NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = w.waiter)",
    ),
];
