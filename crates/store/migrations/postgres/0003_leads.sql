-- Who is to be told that a job is final. Written with the end of the job, and kept until it was told.
CREATE TABLE notices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job bigint NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    url text NOT NULL,
    state text NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    cause text,
    finished bigint NOT NULL,
    tries bigint NOT NULL,
    due bigint NOT NULL
);

CREATE INDEX notices_due ON notices (due, id);

CREATE INDEX notices_finished ON notices (finished);

-- What one of several schedulers leads at a time, and what it keeps for whoever leads it next.
CREATE TABLE leads (
    name text PRIMARY KEY,
    holder text NOT NULL,
    token bigint NOT NULL CHECK (token > 0),
    lead_until bigint NOT NULL,
    document text NOT NULL
) WITH (fillfactor = 50);

-- What happened, for people: the newest of each topic and kind.
CREATE TABLE notes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    at bigint NOT NULL,
    ages boolean NOT NULL,
    document text NOT NULL
);

CREATE INDEX notes_kind ON notes (topic, kind, id);

CREATE UNIQUE INDEX notes_key ON notes (topic, key) WHERE key <> '';
