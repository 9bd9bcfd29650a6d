-- Who is to be told that a job is final. Written with the end of the job, and kept until it was told:
-- a job may be taken up again, or forgotten, in between.
CREATE TABLE notices (
    -- Told to others, so it is never used twice.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    cause TEXT,
    finished INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    due INTEGER NOT NULL
) STRICT;

CREATE INDEX notices_due ON notices (due);

CREATE INDEX notices_finished ON notices (finished);
