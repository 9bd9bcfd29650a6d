-- The database writes this while the row is locked: all changes of jobs, in their order.
CREATE SCHEMA journal;

CREATE TABLE journal.steps (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    job bigint NOT NULL,
    state text,
    fence bigint NOT NULL,
    attempt bigint NOT NULL,
    worker text,
    ready bigint,
    not_before bigint
);

-- The last record of a deleted job.
CREATE TABLE journal.gone (
    id bigint PRIMARY KEY,
    at bigint NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    dedupe_key text,
    attempts bigint NOT NULL,
    failures bigint NOT NULL,
    losses bigint NOT NULL,
    refusals bigint NOT NULL,
    created bigint NOT NULL,
    worker text,
    claimed bigint,
    document text NOT NULL,
    n_dependents bigint NOT NULL,
    cancelling boolean NOT NULL,
    evictions bigint NOT NULL,
    priority integer NOT NULL
);

CREATE VIEW journal.forgotten AS SELECT * FROM journal.gone
    WHERE NOT EXISTS (SELECT FROM maitre.finished WHERE finished.id = gone.id);

CREATE FUNCTION journal.step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_ms bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO journal.steps (at, job, state, fence, attempt, worker, ready)
            VALUES (now_ms, OLD.id, NULL, OLD.fence, OLD.attempts, NULL, OLD.ready);
        INSERT INTO journal.gone VALUES (OLD.id, now_ms, OLD.tenant, OLD.kind, OLD.dedupe_key,
            OLD.attempts, OLD.failures, OLD.losses, OLD.refusals, OLD.created, OLD.worker,
            OLD.claimed, OLD.document, OLD.n_dependents, OLD.cancelling,
            OLD.evictions, OLD.priority);
    ELSE
        INSERT INTO journal.steps (at, job, state, fence, attempt, worker, ready,
            not_before) VALUES (now_ms, NEW.id, NEW.state, NEW.fence, NEW.attempts, NEW.worker,
                NEW.ready, greatest(NEW.backoff_until, NEW.due));
    END IF;
    RETURN NULL;
END
$$;

-- Output and progress of attempts.
CREATE TABLE journal.pieces (
    at bigint NOT NULL,
    job bigint NOT NULL,
    attempt bigint NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (job, attempt, position)
);

CREATE TABLE journal.notes (
    job bigint NOT NULL,
    attempt bigint NOT NULL,
    worker text,
    note text NOT NULL
);

CREATE FUNCTION journal.piece() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal.pieces VALUES ((extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        NEW.job, NEW.attempt, NEW.position);
    RETURN NULL;
END
$$;

CREATE FUNCTION journal.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal.notes VALUES (NEW.id, NEW.attempts, NEW.worker, NEW.note);
    RETURN NULL;
END
$$;
