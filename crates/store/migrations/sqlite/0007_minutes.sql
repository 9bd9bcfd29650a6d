-- Counts of a scheduler in a minute, for charts.
CREATE TABLE minutes (
    minute INTEGER NOT NULL,
    scheduler INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (minute, scheduler)
) STRICT, WITHOUT ROWID;
