-- Written by the database itself while the row is locked: in which order what happened to jobs.
CREATE SCHEMA journal;

CREATE TABLE journal.steps (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    job bigint NOT NULL,
    state text,
    fence bigint NOT NULL,
    attempt bigint NOT NULL,
    worker text
);

CREATE FUNCTION journal.step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_ms bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO journal.steps (at, job, state, fence, attempt, worker)
            VALUES (now_ms, OLD.id, NULL, OLD.fence, OLD.attempts, NULL);
    ELSE
        INSERT INTO journal.steps (at, job, state, fence, attempt, worker)
            VALUES (now_ms, NEW.id, NEW.state, NEW.fence, NEW.attempts, NEW.worker);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER journal_begin AFTER INSERT OR DELETE ON maitre.jobs
    FOR EACH ROW EXECUTE FUNCTION journal.step();
CREATE TRIGGER journal_change AFTER UPDATE ON maitre.jobs
    FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.attempts <> NEW.attempts
        OR OLD.worker IS DISTINCT FROM NEW.worker)
    EXECUTE FUNCTION journal.step();
