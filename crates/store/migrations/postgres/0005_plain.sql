-- Of most attempts that succeed, nothing is to be said but who had them, when and why: such an attempt
-- is kept in the row of its job, which stays as it is from then on.
ALTER TABLE finished ADD COLUMN claimed bigint, ADD COLUMN started bigint, ADD COLUMN why text;

-- Attempts that ended, wherever they are kept.
CREATE VIEW pasts AS
SELECT job, number, worker, claimed, started, ended, ending, error, exit_code, ram_peak_mb, cpu_ms,
    disk_bytes, out_of_memory, why
FROM attempts
UNION ALL
SELECT id, attempts, last_worker, claimed, started, finished, 'succeeded', NULL, exit_code, NULL, NULL,
    NULL, false, why
FROM finished
WHERE claimed IS NOT NULL;

-- A claim writes a row anew: with room beside the entry of the old one, no page has to be split.
ALTER INDEX jobs_pkey SET (fillfactor = 50);
