-- Applications that submit jobs of one kind in transactions of their own do not wait for each other, and
-- what a scheduler refuses is refused here too.
CREATE OR REPLACE FUNCTION submit(
    tenant text,
    type text,
    payload bytea DEFAULT '',
    priority integer DEFAULT 0,
    pool text DEFAULT NULL,
    needs jsonb DEFAULT NULL,
    slots integer DEFAULT 1,
    on_demand boolean DEFAULT false,
    hint text DEFAULT NULL,
    cost numeric DEFAULT 1,
    labels jsonb DEFAULT NULL,
    dedupe_key text DEFAULT NULL,
    not_before timestamptz DEFAULT NULL,
    start_before timestamptz DEFAULT NULL,
    run_timeout interval DEFAULT NULL,
    attempts_max integer DEFAULT 3,
    group_name text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = maitre, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    now_ms bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    due_ms bigint := (extract(epoch FROM submit.not_before) * 1000)::bigint;
    asked jsonb;
    job bigint;
    line bigint;
BEGIN
    PERFORM check_name('tenant', submit.tenant);
    PERFORM check_name('type', submit.type);
    PERFORM check_name(field, value) FROM (VALUES
        ('pool', submit.pool), ('hint', submit.hint), ('dedupe_key', submit.dedupe_key),
        ('group_name', submit.group_name)) AS texts (field, value)
        WHERE value IS NOT NULL;
    PERFORM check_number('priority', submit.priority, -1000, 1000);
    PERFORM check_number('slots', submit.slots, 1, 100000);
    PERFORM check_number('attempts_max', submit.attempts_max, 1, 100);
    PERFORM check_number('cost', submit.cost, 0, 1000000000000);
    PERFORM check_number('payload', length(submit.payload), 0, 262144);
    PERFORM check_number('not_before', coalesce(due_ms, 0), 0, 253402300799999);
    PERFORM check_number('start_before',
        coalesce((extract(epoch FROM submit.start_before) * 1000)::bigint, 0), 0, 253402300799999);
    PERFORM check_number('run_timeout',
        coalesce((extract(epoch FROM submit.run_timeout) * 1000)::bigint, 1), 1, 253402300799999);
    PERFORM check_needs(submit.needs);
    PERFORM check_labels(submit.labels);
    IF submit.dedupe_key IS NOT NULL THEN
        SELECT j.id INTO job FROM jobs j WHERE j.tenant = submit.tenant
            AND j.kind = submit.type AND j.dedupe_key = submit.dedupe_key;
        IF FOUND THEN
            RETURN job;
        END IF;
    END IF;
    asked := jsonb_strip_nulls(jsonb_build_object(
        'pool', submit.pool,
        'needs', nullif(submit.needs, '{}'),
        'slots', nullif(submit.slots, 1),
        'priority', nullif(submit.priority, 0),
        'on_demand', nullif(submit.on_demand, false),
        'hint', submit.hint,
        'dedupe_key', submit.dedupe_key,
        'not_before_ms', due_ms,
        'start_before_ms', (extract(epoch FROM submit.start_before) * 1000)::bigint,
        'run_timeout_ms', (extract(epoch FROM submit.run_timeout) * 1000)::bigint,
        'retry', CASE WHEN submit.attempts_max <> 3 THEN jsonb_build_object(
            'attempts_max', submit.attempts_max, 'backoff_ms', 1000, 'backoff_ms_max', 300000)
            END,
        'labels', nullif(submit.labels, '{}'),
        'cost_thousandths', CASE WHEN submit.cost <> 1 THEN (submit.cost * 1000)::bigint END,
        'group', submit.group_name));
    line := hashtextextended(jsonb_build_array(submit.tenant, submit.type, submit.pool,
        submit.needs, submit.slots, submit.on_demand)::text, 0);
    -- Most rows are there, and nobody waits for them. One that nobody made sure of for an hour is made
    -- sure of, unless another does so now: it goes after a day.
    IF NOT EXISTS (SELECT 1 FROM queues q WHERE q.queue = line AND q.used > now_ms - 3600000) THEN
        IF EXISTS (SELECT 1 FROM queues q WHERE q.queue = line AND q.used > now_ms - 43200000) THEN
            UPDATE queues q SET used = now_ms FROM (SELECT w.queue FROM queues w
                WHERE w.queue = line FOR UPDATE SKIP LOCKED) stale WHERE q.queue = stale.queue;
        ELSE
            INSERT INTO queues AS q (queue, tenant, kind, pool, used)
                VALUES (line, submit.tenant, submit.type, submit.pool, now_ms)
                ON CONFLICT (queue) DO UPDATE SET used = excluded.used;
        END IF;
    END IF;
    job := nextval('job_ids');
    INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, state, fence, priority, created,
        ready, queue, place, due, document, payload)
    VALUES (job, submit.tenant, submit.type, submit.dedupe_key, submit.group_name, 'queued', 1,
        submit.priority, now_ms, now_ms, line,
        CASE WHEN coalesce(due_ms, 0) <= now_ms
            THEN now_ms - 64000 * greatest(least(submit.priority, 16), -16) END,
        CASE WHEN due_ms > now_ms THEN due_ms END,
        asked::text, submit.payload)
    ON CONFLICT (tenant, kind, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING;
    IF NOT FOUND THEN
        SELECT j.id INTO job FROM jobs j WHERE j.tenant = submit.tenant
            AND j.kind = submit.type AND j.dedupe_key = submit.dedupe_key;
    END IF;
    RETURN job;
END
$$;

CREATE OR REPLACE FUNCTION check_labels(labels jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF labels IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(labels) <> 'object'
        OR jsonb_path_exists(labels, '$.* ? (@.type() <> "string")') THEN
        RAISE EXCEPTION '`labels` is not an object of texts such as {"team": "red"}'
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM check_number('labels', (SELECT count(*) FROM jsonb_object_keys(labels)), 0, 32);
    PERFORM check_name('labels', word) FROM (SELECT key FROM jsonb_object_keys(labels) AS label (key)
        UNION ALL SELECT value FROM jsonb_each_text(labels) AS label (key, value)
        WHERE value <> '') AS words (word);
END
$$;
