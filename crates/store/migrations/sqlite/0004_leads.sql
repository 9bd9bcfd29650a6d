-- What one of several schedulers leads at a time, and what it keeps for whoever leads it next.
CREATE TABLE leads (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL CHECK (token > 0),
    lead_until INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What happened, for people: the newest of each topic and kind.
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    ages INTEGER NOT NULL CHECK (ages IN (0, 1)),
    document TEXT NOT NULL
) STRICT;

CREATE INDEX notes_kind ON notes (topic, kind);

CREATE UNIQUE INDEX notes_key ON notes (topic, key) WHERE key <> '';
