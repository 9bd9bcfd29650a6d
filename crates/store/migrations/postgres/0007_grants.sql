-- Who was given which jobs: a row for each worker of a call by which jobs were claimed. It may name jobs
-- that somebody else was quicker to claim, and names those whose attempts have ended until all have. Lists
-- are not worth compressing.
CREATE TABLE grants (
    call bigint NOT NULL,
    worker text NOT NULL,
    at bigint NOT NULL,
    jobs bigint[] NOT NULL,
    PRIMARY KEY (call, worker)
) WITH (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX grants_worker ON grants (worker);
