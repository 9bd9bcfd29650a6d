-- The unchanged statements of the version before this one, as named prepared statements. It has
-- schema 8, and works beside this version during an upgrade.
--
-- Replace them with each released step of the schema by the statements of the last version without
-- that step. The arguments of `EXECUTE` in the test may change with them.

PREPARE ensure AS
INSERT INTO queues (queue, tenant, kind, pool, used) SELECT u.queue, u.tenant, u.kind, u.pool,
$5 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS u(queue, tenant, kind, pool)
ORDER BY u.queue ON CONFLICT (queue) DO UPDATE SET used = excluded.used;

PREPARE submit AS
INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, state, fence, priority, ready,
on_hold, n_blockers, n_dependents, queue, place, due, document, payload, created) SELECT u.*,
$18 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
$7::bigint[], $8::integer[], $9::bigint[], $10::boolean[], $11::bigint[], $12::bigint[],
$13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::bytea[]) AS u;

PREPARE look AS
SELECT j.id, j.tenant, j.kind, j.fence, j.priority, j.created, j.ready, j.document, j.payload,
j.n_dependents, j.queue, j.place, CASE WHEN j.fence > 1 THEN json_build_array(
json_build_array(j.attempts, j.failures, j.losses, j.evictions, j.refusals, j.revived),
j.last_worker, j.error, j.exit_code, j.cost, j.backoff_until)::text END FROM (SELECT queue,
(-9223372036854775808)::bigint AS place, (-9223372036854775808)::bigint AS id FROM queues) q
CROSS JOIN LATERAL (SELECT * FROM jobs w WHERE w.queue = q.queue AND w.place IS NOT NULL AND
(w.place, w.id) > (q.place, q.id) AND w.state = 'queued' AND w.id % $1 = $2 ORDER BY w.queue,
w.place, w.id LIMIT $3) j;

PREPARE claim AS
WITH greeted AS (INSERT INTO sessions (worker, generation, lease_until, has_left) SELECT
w.worker, 0, $8, false FROM unnest($9::text[]) AS w(worker) ON CONFLICT DO NOTHING), granted AS
(INSERT INTO grants (call, worker, at, jobs) SELECT $10, w.worker, $8, array_agg(w.id) FROM
unnest($1::bigint[], $3::text[]) AS w(id, worker) GROUP BY w.worker), dropped AS (DELETE FROM
grants WHERE call = ANY($11)), won AS (UPDATE jobs j SET state = 'claimed', fence = j.fence + 1,
attempts = j.attempts + 1, worker = u.worker, claimed = $8, holds = u.holds, why = u.why, pool =
u.pool, charges = u.charges, due = NULL FROM unnest($1::bigint[], $2::bigint[], $3::text[],
$4::text[], $5::text[], $6::text[], $7::text[]) AS u(id, fence, worker, holds, why, pool,
charges) WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence AND j.state = 'queued' AND NOT
j.on_hold RETURNING j.id) SELECT CASE WHEN count(*) < cardinality($1) THEN
coalesce(array_agg(id), '{}') END FROM won;

PREPARE start AS
UPDATE jobs j SET state = 'running', started = coalesce(j.started, $4), place = NULL, fence =
j.fence + CASE j.state WHEN 'claimed' THEN 1 ELSE 0 END FROM unnest($1::bigint[], $2::bigint[],
$3::text[]) AS u(id, attempt, worker) WHERE j.id BETWEEN u.id AND u.id AND j.attempts =
u.attempt AND j.worker = u.worker RETURNING j.id, j.fence;

PREPARE progress AS
UPDATE jobs j SET fraction = u.fraction, note = u.note, stage = u.stage, fence = j.fence + 1
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[]) AS
u(id, attempt, worker, fraction, note, stage) WHERE j.id BETWEEN u.id AND u.id AND j.attempts =
u.attempt AND j.worker = u.worker RETURNING j.id;

PREPARE note_output AS
INSERT INTO logs (job, attempt, position, stream, at, bytes) SELECT u.job, u.attempt,
u.position, u.stream, $6, u.bytes FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],
$4::text[], $5::bytea[]) AS u(job, attempt, position, stream, bytes);

PREPARE succeed AS
WITH gone AS (DELETE FROM jobs j USING unnest($1::bigint[], $2::bigint[], $3::bigint[],
$4::integer[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[]) AS u(id,
fence_before, started, exit_code, cost, charged, history_key, fetched_paths, fetched_bytes)
WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before RETURNING j.id, j.tenant,
u.charged, u.history_key, j.kind, j.fence, j.priority, j.created, j.ready, j.document,
j.payload, j.worker, j.claimed, j.why, u.started, u.exit_code, u.cost, u.fetched_paths,
u.fetched_bytes, j.dedupe_key, j.group_name, j.attempts, j.failures, j.losses, j.evictions,
j.refusals, j.revived), over AS (INSERT INTO finished (id, tenant, kind, state, fence, priority,
created, ready, queue, document, payload, last_worker, exit_code, cost, finished, claimed,
started, why, dedupe_key, group_name, attempts, failures, losses, evictions, refusals, revived)
SELECT id, tenant, kind, 'succeeded', fence + 1, priority, created, ready, 0, document, payload,
worker, exit_code, cost, $10, claimed, started, why, dedupe_key, group_name, attempts, failures,
losses, evictions, refusals, revived FROM gone), ran AS (INSERT INTO runs (tenant, kind,
history_key, at, wait, duration, ending, out_of_memory, fetched_paths, fetched_bytes,
n_dependents) SELECT tenant, kind, history_key, $10, claimed - coalesce(ready, created), $10 -
claimed, 'succeeded', false, fetched_paths, fetched_bytes, 0 FROM gone WHERE history_key IS NOT
NULL), charged AS (INSERT INTO usage AS s (minute, tenant, part, cost, completed) SELECT
$11::bigint, u.tenant, $12::integer, greatest(least(u.cost, 9223372036854775807),
-9223372036854775807), u.completed FROM (SELECT tenant, sum(charged) AS cost, count(*) AS
completed FROM gone WHERE charged IS NOT NULL GROUP BY tenant) u ORDER BY u.tenant COLLATE "C"
ON CONFLICT (minute, tenant, part) DO UPDATE SET cost = greatest(least(s.cost::numeric +
excluded.cost, 9223372036854775807), -9223372036854775807)::bigint, completed = s.completed +
excluded.completed) SELECT CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id),
'{}') END FROM gone;

PREPARE succeed_at_once AS
WITH gone AS (DELETE FROM jobs j USING unnest($1::bigint[], $2::bigint[], $3::bigint[],
$4::integer[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[]) AS u(id,
fence_before, started, exit_code, cost, charged, history_key, fetched_paths, fetched_bytes)
WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before RETURNING j.id, j.tenant,
u.charged, u.history_key, j.kind, j.fence, j.priority, j.created, j.ready, j.document,
j.payload, j.worker, j.claimed, j.why, u.started, u.exit_code, u.cost, u.fetched_paths,
u.fetched_bytes), over AS (INSERT INTO finished (id, tenant, kind, state, fence, priority,
created, ready, queue, document, payload, last_worker, exit_code, cost, finished, claimed,
started, why, dedupe_key, group_name, attempts, failures, losses, evictions, refusals, revived)
SELECT id, tenant, kind, 'succeeded', fence + 1, priority, created, ready, 0, document, payload,
worker, exit_code, cost, $10, claimed, started, why, NULL, NULL, 1, 0, 0, 0, 0, 0 FROM gone),
ran AS (INSERT INTO runs (tenant, kind, history_key, at, wait, duration, ending, out_of_memory,
fetched_paths, fetched_bytes, n_dependents) SELECT tenant, kind, history_key, $10, claimed -
coalesce(ready, created), $10 - claimed, 'succeeded', false, fetched_paths, fetched_bytes, 0
FROM gone WHERE history_key IS NOT NULL), charged AS (INSERT INTO usage AS s (minute, tenant,
part, cost, completed) SELECT $11::bigint, u.tenant, $12::integer, greatest(least(u.cost,
9223372036854775807), -9223372036854775807), u.completed FROM (SELECT tenant, sum(charged) AS
cost, count(*) AS completed FROM gone WHERE charged IS NOT NULL GROUP BY tenant) u ORDER BY
u.tenant COLLATE "C" ON CONFLICT (minute, tenant, part) DO UPDATE SET cost =
greatest(least(s.cost::numeric + excluded.cost, 9223372036854775807),
-9223372036854775807)::bigint, completed = s.completed + excluded.completed) SELECT CASE WHEN
count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM gone;

PREPARE change AS
UPDATE jobs j SET state = u.state, fence = u.fence, priority = u.priority, failures =
u.failures, losses = u.losses, evictions = u.evictions, refusals = u.refusals, revived =
u.revived, ready = u.ready, backoff_until = u.backoff_until, on_hold = u.on_hold, cancelling =
u.cancelling, n_blockers = u.n_blockers, n_dependents = u.n_dependents, last_worker =
u.last_worker, error = u.error, exit_code = u.exit_code, cost = u.cost, place = u.place, due =
u.due, worker = CASE WHEN u.is_live THEN j.worker END, claimed = CASE WHEN u.is_live THEN
j.claimed END, started = CASE WHEN u.is_live THEN j.started END, holds = CASE WHEN u.is_live
THEN j.holds END, fraction = CASE WHEN u.is_live THEN j.fraction END, note = CASE WHEN u.is_live
THEN j.note END, stage = CASE WHEN u.is_live THEN j.stage END, why = CASE WHEN u.is_live THEN
j.why END, pool = CASE WHEN u.is_live THEN j.pool END, charges = CASE WHEN u.is_live THEN
j.charges END FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::integer[],
$6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
$12::bigint[], $13::boolean[], $14::boolean[], $15::boolean[], $16::bigint[], $17::bigint[],
$18::text[], $19::text[], $20::integer[], $21::bigint[], $22::bigint[], $23::bigint[],
$24::bigint[]) AS u(id, fence_before, state, fence, priority, failures, losses, evictions,
refusals, revived, ready, backoff_until, on_hold, cancelling, is_live, n_blockers, n_dependents,
last_worker, error, exit_code, cost, place, due, queue) WHERE j.id BETWEEN u.id AND u.id AND
j.fence = u.fence_before RETURNING j.queue, j.place;

PREPARE finish AS
WITH gone AS (DELETE FROM jobs j USING unnest($1::bigint[], $2::bigint[], $3::text[],
$4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[],
$11::text[], $12::text[], $13::integer[], $14::bigint[], $15::bytea[]) AS u(id, fence_before,
state, fence, failures, losses, evictions, refusals, revived, last_worker, cause, error,
exit_code, cost, result) WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before RETURNING
j.id, j.tenant, j.kind, j.dedupe_key, j.group_name, j.priority, j.attempts, j.created, j.ready,
j.queue, j.document, j.payload, u.state, u.fence, u.failures, u.losses, u.evictions, u.refusals,
u.revived, u.last_worker, u.cause, u.error, u.exit_code, u.cost, u.result) INSERT INTO finished
(id, tenant, kind, dedupe_key, group_name, priority, attempts, created, ready, queue, document,
payload, state, fence, failures, losses, evictions, refusals, revived, last_worker, cause,
error, exit_code, cost, result, finished) SELECT gone.*, $16 FROM gone;

PREPARE revive AS
WITH back AS (DELETE FROM finished f USING unnest($1::bigint[], $2::bigint[], $3::text[],
$4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
$10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::boolean[], $15::boolean[],
$16::bigint[], $17::bigint[], $18::text[], $19::text[], $20::integer[], $21::bigint[],
$22::bigint[], $23::bigint[], $24::bigint[]) AS u(id, fence_before, state, fence, priority,
failures, losses, evictions, refusals, revived, ready, backoff_until, on_hold, cancelling,
is_live, n_blockers, n_dependents, last_worker, error, exit_code, cost, place, due, queue) WHERE
f.id BETWEEN u.id AND u.id AND f.fence = u.fence_before RETURNING f.id, f.tenant, f.kind,
f.dedupe_key, f.group_name, f.attempts, f.created, u.queue, f.document, f.payload, u.state AS
new_state, u.fence AS new_fence, u.priority AS new_priority, u.failures AS new_failures,
u.losses AS new_losses, u.evictions AS new_evictions, u.refusals AS new_refusals, u.revived AS
new_revived, u.ready AS new_ready, u.last_worker AS new_last_worker, u.cost AS new_cost,
u.place, u.due) INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, attempts, created,
queue, document, payload, state, fence, priority, failures, losses, evictions, refusals,
revived, ready, last_worker, cost, place, due) SELECT * FROM back RETURNING queue, place;

PREPARE note_past AS
INSERT INTO attempts (job, number, worker, claimed, started, ended, ending, error, exit_code,
ram_peak_mb, cpu_ms, disk_bytes, out_of_memory, why) SELECT * FROM unnest($1::bigint[],
$2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
$9::integer[], $10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::text[]);

PREPARE pasts AS
SELECT job, number, worker, ending FROM attempts WHERE job = ANY($1) UNION ALL SELECT j.id,
j.attempts, j.last_worker, 'succeeded' FROM (SELECT DISTINCT id FROM unnest($1::bigint[]) AS
u(id)) u CROSS JOIN LATERAL (SELECT * FROM finished f WHERE f.id BETWEEN u.id AND u.id ORDER BY
f.id LIMIT 1) j WHERE j.claimed IS NOT NULL;

PREPARE charge AS
INSERT INTO usage AS s (minute, tenant, part, cost, completed) SELECT $1::bigint, u.tenant,
$2::integer, greatest(least(u.cost, 9223372036854775807), -9223372036854775807), u.completed
FROM (SELECT * FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS n(tenant, cost,
completed)) u ORDER BY u.tenant COLLATE "C" ON CONFLICT (minute, tenant, part) DO UPDATE SET
cost = greatest(least(s.cost::numeric + excluded.cost, 9223372036854775807),
-9223372036854775807)::bigint, completed = s.completed + excluded.completed;

PREPARE greet AS
INSERT INTO sessions AS s (worker, generation, lease_until, has_left) VALUES ($1, (SELECT
highest + 1 FROM generations), $2 + coalesce($3::bigint, (extract(epoch FROM clock_timestamp())
* 1000)::bigint), false) ON CONFLICT (worker) DO UPDATE SET generation = s.generation + 1,
lease_until = excluded.lease_until, has_left = false RETURNING generation;

PREPARE renew AS
UPDATE sessions s SET lease_until = $3 + coalesce($4::bigint, (extract(epoch FROM
clock_timestamp()) * 1000)::bigint) FROM unnest($1::text[], $2::bigint[]) AS u(worker,
generation) WHERE s.worker = u.worker AND s.generation = u.generation AND NOT s.has_left
RETURNING s.worker, s.generation;

PREPARE renew_all AS
UPDATE sessions s SET lease_until = $1 + coalesce($2::bigint, (extract(epoch FROM
clock_timestamp()) * 1000)::bigint) WHERE NOT s.has_left AND EXISTS (SELECT 1 FROM grants g
WHERE g.worker = s.worker);

PREPARE expired AS
SELECT j.id, j.tenant, j.kind, j.state, j.fence, j.priority, j.attempts, j.failures, j.losses,
j.evictions, j.refusals, j.revived, j.created, j.ready, j.last_worker, j.error, j.exit_code,
j.cost, j.document, j.payload, j.backoff_until, j.on_hold, j.cancelling, j.n_blockers,
j.n_dependents, j.worker, j.claimed, j.started, j.holds, j.fraction, j.note, j.why,
NULL::bigint, NULL::text, NULL::bytea, j.pool, j.stage FROM (SELECT DISTINCT s.worker, u.id FROM
sessions s JOIN grants g ON g.worker = s.worker CROSS JOIN LATERAL unnest(g.jobs) AS u(id) WHERE
s.lease_until <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) u
CROSS JOIN LATERAL (SELECT * FROM jobs w WHERE w.id BETWEEN u.id AND u.id AND w.worker =
u.worker OFFSET 0) j ORDER BY j.id LIMIT $2;

PREPARE sweep AS
DELETE FROM grants WHERE call = ANY(ARRAY(SELECT g.call FROM grants g GROUP BY g.call HAVING
max(g.at) < $1 AND NOT bool_or(EXISTS (SELECT 1 FROM (SELECT g.worker, n.id FROM unnest(g.jobs)
AS n(id)) u CROSS JOIN LATERAL (SELECT * FROM jobs w WHERE w.id BETWEEN u.id AND u.id AND
w.worker = u.worker OFFSET 0) j)) LIMIT $2));

PREPARE forget AS
WITH old AS MATERIALIZED (SELECT id FROM finished WHERE finished < $1 ORDER BY finished, id
LIMIT $2 FOR UPDATE SKIP LOCKED), gone_keys AS (SELECT DISTINCT k.key FROM old JOIN keyed k ON
k.job = old.id), dropped_keys AS (DELETE FROM keys USING gone_keys WHERE keys.id =
gone_keys.key), dropped_keyed AS (DELETE FROM keyed USING gone_keys WHERE keyed.key =
gone_keys.key), dropped_logs AS (DELETE FROM logs USING old WHERE logs.job = old.id),
dropped_attempts AS (DELETE FROM attempts USING old WHERE attempts.job = old.id) DELETE FROM
finished USING old WHERE finished.id = old.id;
