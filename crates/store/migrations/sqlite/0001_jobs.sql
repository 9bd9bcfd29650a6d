-- Moments are milliseconds, costs are thousandths, lists and documents are JSON.
-- No check uses `IN` with more than two values: SQLite would fill a table with them for every row.
-- Finished jobs leave `jobs`, so that what every round touches stays small.

-- What outlives every row: numbers that are never handed out twice, and the latest moment seen.
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    next_job INTEGER NOT NULL,
    latest INTEGER NOT NULL,
    generations INTEGER NOT NULL
) STRICT;

INSERT INTO meta (one, next_job, latest, generations) VALUES (1, 1, 0, 0);

-- What was asked, written once. Apart, so that a change of state does not copy a payload.
CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    document TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;

-- Unfinished jobs.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    dedupe_key TEXT,
    group_name TEXT,
    state TEXT NOT NULL
        CHECK (state = 'blocked' OR state = 'queued' OR state = 'claimed' OR state = 'running'),
    fence INTEGER NOT NULL CHECK (fence > 0),
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    evictions INTEGER NOT NULL,
    refusals INTEGER NOT NULL,
    revived INTEGER NOT NULL,
    created INTEGER NOT NULL,
    ready INTEGER,
    backoff_until INTEGER,
    on_hold INTEGER NOT NULL CHECK (on_hold IN (0, 1)),
    cancelling INTEGER NOT NULL CHECK (cancelling IN (0, 1)),
    n_blockers INTEGER NOT NULL CHECK (n_blockers >= 0),
    n_dependents INTEGER NOT NULL CHECK (n_dependents >= 0),
    last_worker TEXT,
    error TEXT,
    exit_code INTEGER,
    cost INTEGER,
    -- The current attempt; its number is `attempts`.
    worker TEXT,
    claimed INTEGER,
    started INTEGER,
    holds TEXT,
    fraction INTEGER,
    note TEXT,
    why TEXT,
    CHECK ((state = 'blocked') = (n_blockers > 0)),
    CHECK ((state = 'blocked') = (ready IS NULL)),
    CHECK ((state IN ('claimed', 'running')) = (worker IS NOT NULL)),
    CHECK ((worker IS NULL) = (claimed IS NULL)),
    CHECK ((worker IS NULL) = (why IS NULL)),
    CHECK ((state = 'running') = (started IS NOT NULL)),
    CHECK ((fraction IS NULL) = (note IS NULL)),
    CHECK (worker IS NOT NULL OR (holds IS NULL AND fraction IS NULL)),
    CHECK (cancelling = 0 OR worker IS NOT NULL)
) STRICT;

-- At most one unfinished job of a tenant, type and key.
CREATE UNIQUE INDEX jobs_dedupe ON jobs (tenant, kind, dedupe_key)
WHERE dedupe_key IS NOT NULL;

CREATE INDEX jobs_worker ON jobs (worker) WHERE worker IS NOT NULL;

CREATE INDEX jobs_group ON jobs (group_name) WHERE group_name IS NOT NULL;

-- Which unfinished job waits for which. No foreign keys: every job that ends would pay for the few
-- that others wait for; `n_blockers` and `n_dependents` say who has edges to take along.
CREATE TABLE waits (
    blocker INTEGER NOT NULL,
    waiter INTEGER NOT NULL,
    PRIMARY KEY (blocker, waiter),
    CHECK (blocker < waiter)
) STRICT, WITHOUT ROWID;

CREATE INDEX waits_waiter ON waits (waiter);

-- Jobs that are done with.
CREATE TABLE finished (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    group_name TEXT,
    state TEXT NOT NULL
        CHECK (state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
    fence INTEGER NOT NULL CHECK (fence > 0),
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    evictions INTEGER NOT NULL,
    refusals INTEGER NOT NULL,
    revived INTEGER NOT NULL,
    created INTEGER NOT NULL,
    ready INTEGER,
    last_worker TEXT,
    finished INTEGER NOT NULL,
    cause TEXT,
    error TEXT,
    exit_code INTEGER,
    cost INTEGER,
    result BLOB,
    CHECK ((state = 'succeeded') = (cause IS NULL))
) STRICT;

CREATE INDEX finished_finished ON finished (finished);

CREATE INDEX finished_tenant ON finished (tenant);

CREATE INDEX finished_group ON finished (group_name) WHERE group_name IS NOT NULL;

CREATE INDEX finished_cause ON finished (cause) WHERE cause IS NOT NULL;

-- Attempts that ended.
CREATE TABLE attempts (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL CHECK (number > 0),
    worker TEXT NOT NULL,
    claimed INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER NOT NULL,
    ending TEXT NOT NULL,
    error TEXT,
    exit_code INTEGER,
    ram_peak_mb INTEGER,
    cpu_ms INTEGER,
    disk_bytes INTEGER,
    out_of_memory INTEGER NOT NULL CHECK (out_of_memory IN (0, 1)),
    why TEXT NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- Output of attempts. Pieces of one attempt do not overlap.
CREATE TABLE logs (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    position INTEGER NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('out', 'err')),
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (job, attempt, position)
) STRICT;

-- One row a worker: its newest session.
CREATE TABLE sessions (
    worker TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    has_left INTEGER NOT NULL CHECK (has_left IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    minute INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    cost INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    PRIMARY KEY (minute, tenant)
) STRICT, WITHOUT ROWID;

-- In the order of time: the store's clock does not go back.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    history_key TEXT NOT NULL,
    at INTEGER NOT NULL,
    wait INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    ending TEXT NOT NULL,
    ram_peak_mb INTEGER,
    cpu_ms INTEGER,
    disk_bytes INTEGER,
    out_of_memory INTEGER NOT NULL CHECK (out_of_memory IN (0, 1)),
    fetched_paths INTEGER,
    fetched_bytes INTEGER,
    n_dependents INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_history ON runs (tenant, kind, history_key);

-- Submissions that may come again, and the jobs that answer them.
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    jobs TEXT NOT NULL,
    UNIQUE (tenant, key)
) STRICT;

CREATE TABLE keyed (
    job INTEGER NOT NULL,
    key INTEGER NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keyed_key ON keyed (key);
