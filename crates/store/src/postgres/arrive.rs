//! After an import: queues, grants and limits of the moved jobs.

use super::columns::{PRIORITY_CLAMP, STEP_MS};

/// A `SQLite` file has one scheduler, which counts limits in memory. So the import writes the usage
/// of each live attempt under every limit that may exist. The names are those of `server/quota.rs`.
const CHARGE: &str = "UPDATE jobs SET charges = (SELECT json_agg(json_build_array( \
    array_to_string(u.name, chr(31)), u.amount))::text FROM (VALUES \
    (ARRAY['jobs', tenant], 1), \
    (ARRAY['quota', tenant, pool], coalesce((document::json ->> 'slots')::bigint, 1)), \
    (ARRAY['type', kind], 1), \
    (ARRAY['budget', tenant], coalesce((document::json ->> 'cost_thousandths')::bigint, 1000)), \
    (ARRAY['budgets'], coalesce((document::json ->> 'cost_thousandths')::bigint, 1000)), \
    (CASE WHEN holds = '\"any\"' THEN ARRAY['workspaces', tenant] END, 1), \
    (ARRAY['resource', holds::json ->> 'named'], \
    CASE WHEN holds LIKE '{\"named\":%' THEN 1 END)) AS u(name, amount) \
    WHERE u.name IS NOT NULL AND u.amount > 0) WHERE worker IS NOT NULL";
const HOLD: &str = "INSERT INTO holdings (name, held) \
    SELECT c.value ->> 0, sum((c.value ->> 1)::bigint) FROM jobs j, \
    json_array_elements(j.charges::json) AS c(value) WHERE j.charges IS NOT NULL GROUP BY 1 \
    ON CONFLICT (name) DO UPDATE SET held = holdings.held + excluded.held";

/// Puts jobs into queues, and sets the sequences behind the imported numbers.
pub(super) fn arrive() -> String {
    format!(
        "UPDATE jobs SET queue = hashtextextended(json_build_array(tenant, kind, \
        document::json -> 'pool', document::json -> 'needs', document::json -> 'slots', \
        document::json -> 'amounts', document::json -> 'on_demand', \
        document::json -> 'resource')::text, 0), \
        due = CASE WHEN state = 'queued' AND NOT on_hold THEN greatest(backoff_until, \
        (document::json ->> 'not_before_ms')::bigint, 0) END; \
        UPDATE jobs SET due = NULL, place = ready - {STEP_MS} \
        * greatest(least(priority, {PRIORITY_CLAMP}), -{PRIORITY_CLAMP}) \
        WHERE due <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint; \
        INSERT INTO queues (queue, tenant, kind, pool, used) \
        SELECT DISTINCT ON (queue) queue, tenant, kind, document::json ->> 'pool', \
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM jobs ON CONFLICT DO NOTHING; \
        INSERT INTO grants (call, worker, at, jobs) SELECT row_number() OVER (), worker, \
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, array_agg(id) \
        FROM jobs WHERE worker IS NOT NULL GROUP BY worker; \
        {CHARGE}; {HOLD}; \
        SELECT setval(pg_get_serial_sequence('keys', 'id'), (SELECT max(id) FROM keys)), \
        setval(pg_get_serial_sequence('runs', 'id'), (SELECT max(id) FROM runs)), \
        setval(pg_get_serial_sequence('notices', 'id'), (SELECT max(id) FROM notices)), \
        setval(pg_get_serial_sequence('notes', 'id'), (SELECT max(id) FROM notes))"
    )
}
