-- Moments are milliseconds, costs are thousandths, documents are JSON.
-- Finished jobs leave `jobs`, so that what every round touches stays small. No table refers to
-- another: what belongs together is written in one transaction, and a check a row would cost more
-- than the row.

CREATE SEQUENCE job_ids;

-- Unfinished jobs. Pages have room for new versions of their rows; what is left behind is swept up
-- all the time. A large payload is kept apart by Postgres itself, not copied when a row changes.
CREATE TABLE jobs (
    id bigint PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    dedupe_key text,
    group_name text,
    state text NOT NULL CHECK (state IN ('blocked', 'queued', 'claimed', 'running')),
    fence bigint NOT NULL CHECK (fence > 0),
    priority integer NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    evictions bigint NOT NULL DEFAULT 0,
    refusals bigint NOT NULL DEFAULT 0,
    revived bigint NOT NULL DEFAULT 0,
    created bigint NOT NULL,
    ready bigint,
    backoff_until bigint,
    on_hold boolean NOT NULL DEFAULT false,
    cancelling boolean NOT NULL DEFAULT false,
    n_blockers bigint NOT NULL DEFAULT 0 CHECK (n_blockers >= 0),
    n_dependents bigint NOT NULL DEFAULT 0 CHECK (n_dependents >= 0),
    last_worker text,
    error text,
    exit_code integer,
    cost bigint,
    -- The current attempt; its number is `attempts`.
    worker text,
    claimed bigint,
    started bigint,
    holds text,
    fraction bigint,
    note text,
    why text,
    pool text,
    -- What it uses of limits that hold across schedulers: names and amounts.
    charges text,
    -- Which queue it stands in. `place` is its place in there: a key that never changes while it
    -- waits. One that waits for a moment has that moment in `due` instead; one that does not wait
    -- for a worker has neither.
    queue bigint NOT NULL,
    place bigint,
    due bigint,
    document text NOT NULL,
    payload bytea NOT NULL,
    CHECK ((state = 'blocked') = (n_blockers > 0)),
    CHECK ((state = 'blocked') = (ready IS NULL)),
    CHECK ((state IN ('claimed', 'running')) = (worker IS NOT NULL)),
    CHECK ((worker IS NULL) = (claimed IS NULL)),
    CHECK ((worker IS NULL) = (why IS NULL)),
    CHECK ((state = 'running') = (started IS NOT NULL)),
    CHECK ((fraction IS NULL) = (note IS NULL)),
    CHECK (worker IS NOT NULL OR (holds IS NULL AND fraction IS NULL)),
    CHECK (NOT cancelling OR worker IS NOT NULL),
    CHECK (worker IS NOT NULL OR charges IS NULL),
    CHECK (state = 'queued' OR (place IS NULL AND due IS NULL))
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

-- At most one unfinished job of a tenant, type and key.
CREATE UNIQUE INDEX jobs_dedupe ON jobs (tenant, kind, dedupe_key) WHERE dedupe_key IS NOT NULL;

-- The first jobs of a queue, in order.
CREATE INDEX jobs_window ON jobs (queue, place, id) WHERE place IS NOT NULL;

CREATE INDEX jobs_due ON jobs (due) WHERE due IS NOT NULL;

CREATE INDEX jobs_worker ON jobs (worker) WHERE worker IS NOT NULL;

CREATE INDEX jobs_group ON jobs (group_name) WHERE group_name IS NOT NULL;

-- One row for jobs of one tenant that only their order tells apart. `used` is when somebody last
-- made sure that it is here.
CREATE TABLE queues (
    queue bigint PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    pool text,
    used bigint NOT NULL
) WITH (fillfactor = 80);

-- Which unfinished job waits for which.
CREATE TABLE waits (
    blocker bigint NOT NULL,
    waiter bigint NOT NULL,
    PRIMARY KEY (blocker, waiter),
    CHECK (blocker < waiter)
);

CREATE INDEX waits_waiter ON waits (waiter);

-- Jobs that are done with.
CREATE TABLE finished (
    id bigint PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    dedupe_key text,
    group_name text,
    state text NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    fence bigint NOT NULL CHECK (fence > 0),
    priority integer NOT NULL,
    attempts bigint NOT NULL,
    failures bigint NOT NULL,
    losses bigint NOT NULL,
    evictions bigint NOT NULL,
    refusals bigint NOT NULL,
    revived bigint NOT NULL,
    created bigint NOT NULL,
    ready bigint,
    last_worker text,
    finished bigint NOT NULL,
    cause text,
    error text,
    exit_code integer,
    cost bigint,
    result bytea,
    queue bigint NOT NULL,
    document text NOT NULL,
    payload bytea NOT NULL,
    CHECK ((state = 'succeeded') = (cause IS NULL))
);

CREATE INDEX finished_finished ON finished (finished);

CREATE INDEX finished_tenant ON finished (tenant, id);

CREATE INDEX finished_group ON finished (group_name) WHERE group_name IS NOT NULL;

CREATE INDEX finished_cause ON finished (cause) WHERE cause IS NOT NULL;

-- Attempts that ended.
CREATE TABLE attempts (
    job bigint NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    worker text NOT NULL,
    claimed bigint NOT NULL,
    started bigint,
    ended bigint NOT NULL,
    ending text NOT NULL,
    error text,
    exit_code integer,
    ram_peak_mb bigint,
    cpu_ms bigint,
    disk_bytes bigint,
    out_of_memory boolean NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (job, number)
);

-- Output of attempts. Pieces of one attempt do not overlap.
CREATE TABLE logs (
    job bigint NOT NULL,
    attempt bigint NOT NULL,
    position bigint NOT NULL,
    stream text NOT NULL CHECK (stream IN ('out', 'err')),
    at bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (job, attempt, position)
);

-- One row a worker: its newest session.
CREATE TABLE sessions (
    worker text PRIMARY KEY,
    generation bigint NOT NULL,
    lease_until bigint NOT NULL,
    has_left boolean NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- The highest generation of workers that are forgotten.
CREATE TABLE generations (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    highest bigint NOT NULL
);

INSERT INTO generations (highest) VALUES (0);

CREATE TABLE settings (
    kind text NOT NULL,
    name text NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (kind, name)
);

-- `part` keeps schedulers from waiting for each other: each adds to a row of its own.
CREATE TABLE usage (
    minute bigint NOT NULL,
    tenant text NOT NULL,
    part integer NOT NULL,
    cost bigint NOT NULL,
    completed bigint NOT NULL,
    PRIMARY KEY (minute, tenant, part)
) WITH (fillfactor = 50);

CREATE TABLE runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    history_key text NOT NULL,
    at bigint NOT NULL,
    wait bigint NOT NULL,
    duration bigint NOT NULL,
    ending text NOT NULL,
    ram_peak_mb bigint,
    cpu_ms bigint,
    disk_bytes bigint,
    out_of_memory boolean NOT NULL,
    fetched_paths bigint,
    fetched_bytes bigint,
    n_dependents bigint NOT NULL
);

CREATE INDEX runs_history ON runs (tenant, kind, history_key, id);

-- Submissions that may come again, and the jobs that answer them.
CREATE TABLE keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    key text NOT NULL,
    body bytea NOT NULL,
    jobs bigint[] NOT NULL,
    UNIQUE (tenant, key)
);

CREATE TABLE keyed (
    job bigint NOT NULL,
    key bigint NOT NULL,
    PRIMARY KEY (job, key)
);

CREATE INDEX keyed_key ON keyed (key);

CREATE INDEX jobs_cancelling ON jobs (worker) WHERE cancelling;

-- Schedulers that share this store: what each of them said last of what it has under way.
CREATE TABLE schedulers (
    id bigint PRIMARY KEY,
    said text NOT NULL,
    at bigint NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

-- What is in use of each limit that holds across schedulers, by all attempts together. Who has no
-- limit has no row.
CREATE TABLE holdings (
    name text PRIMARY KEY,
    held bigint NOT NULL CHECK (held >= 0)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
