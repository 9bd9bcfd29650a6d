-- Counts of a scheduler in a minute, for charts.
CREATE TABLE minutes (
    minute bigint NOT NULL,
    scheduler bigint NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (minute, scheduler)
);
