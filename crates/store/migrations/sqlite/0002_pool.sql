-- The pool of the worker that has the current attempt: what it uses there counts before the worker
-- is back after a restart.
ALTER TABLE jobs ADD COLUMN pool TEXT;
