-- Jobs: runs of long operations, which their callers follow. Open ones are hot; ended ones move to a history partitioned
-- by time, their log with them (DESIGN section 7).

CREATE TABLE inn.jobs (
    id               uuid PRIMARY KEY,
    tenant           uuid        NOT NULL REFERENCES inn.tenants (id),
    app              uuid        NOT NULL REFERENCES inn.apps (id),
    operation        text COLLATE "C" NOT NULL,
    -- What carries it out: a request of an agent, or a service of the app's that a node calls.
    kind             text COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'upstream')),
    state            text COLLATE "C" NOT NULL DEFAULT 'queued'
                     CHECK (state IN ('queued', 'running', 'waiting', 'completed', 'failed', 'canceled')),
    params           json        NOT NULL,
    -- The member who called; empty for a visitor or a user of the app's own. And the agent, when one called for them.
    requester_user   uuid,
    requester_label  text        NOT NULL,
    agent            text COLLATE "C",
    -- Of kind 'agent': the request that it is. Not a reference, since requests move to their own history.
    request          uuid,
    attempt          integer     NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND attempts),
    attempts         integer     NOT NULL CHECK (attempts > 0),
    -- Moves on with every start: fences late outcomes.
    epoch            bigint      NOT NULL DEFAULT 0,
    node             text COLLATE "C",
    lease_until      timestamptz,
    -- Queued: not before this moment. Waiting: the next look at the upstream.
    next_at          timestamptz DEFAULT now(),
    -- Given up then, attempts and pauses included.
    deadline         timestamptz,
    -- An upstream has taken it on, under a name of its own.
    taken_on         boolean     NOT NULL DEFAULT false,
    remote           text,
    cancel_requested boolean     NOT NULL DEFAULT false,
    -- SHA-256 of the token its upstream reports with.
    token            bytea,
    progress         json,
    question         text,
    result           json,
    error            json,
    past_attempts    json        NOT NULL DEFAULT '[]',
    retry_of         uuid,
    -- Number of the newest line of its log.
    lines            bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at         timestamptz,
    -- Nothing silently stuck (DESIGN invariant 10): an agent's job is as alive as its request, any other has an owner or a
    -- next step, and a deadline.
    CONSTRAINT jobs_of_agents CHECK ((kind = 'agent') = (request IS NOT NULL)),
    CONSTRAINT jobs_running CHECK (kind = 'agent' OR state <> 'running' OR (node IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT jobs_resting CHECK (kind = 'agent' OR state NOT IN ('queued', 'waiting')
        OR (node IS NULL AND lease_until IS NULL AND next_at IS NOT NULL)),
    CONSTRAINT jobs_deadline CHECK (kind = 'agent' OR deadline IS NOT NULL),
    CONSTRAINT jobs_ended CHECK ((state IN ('completed', 'failed', 'canceled')) = (ended_at IS NOT NULL))
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.0,
    autovacuum_analyze_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What nodes and sweeps walk along: what is due, leases, ends of patience, rows to move away.
CREATE INDEX jobs_due_idx ON inn.jobs (next_at) WHERE kind = 'upstream' AND state IN ('queued', 'waiting');
CREATE INDEX jobs_lease_idx ON inn.jobs (lease_until) WHERE kind = 'upstream' AND state = 'running';
CREATE INDEX jobs_deadline_idx ON inn.jobs (deadline) WHERE kind = 'upstream' AND ended_at IS NULL;
CREATE INDEX jobs_ended_idx ON inn.jobs (ended_at) WHERE ended_at IS NOT NULL;
-- What an app lists, and how many it has open.
CREATE INDEX jobs_app_idx ON inn.jobs (app, created_at DESC, id DESC);
CREATE INDEX jobs_open_idx ON inn.jobs (app) WHERE kind = 'upstream' AND ended_at IS NULL;

-- The log of open jobs: numbered from 1 without gaps, the newest 1,000 lines.
CREATE TABLE inn.job_lines (
    job     uuid        NOT NULL REFERENCES inn.jobs (id) ON DELETE CASCADE,
    seq     bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind    text COLLATE "C" NOT NULL CHECK (kind IN ('state', 'progress', 'log')),
    text    text        NOT NULL CHECK (char_length(text) <= 1000),
    percent smallint CHECK (percent BETWEEN 0 AND 100),
    PRIMARY KEY (job, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE inn.jobs_history (
    LIKE inn.jobs INCLUDING DEFAULTS,
    -- Its lines, oldest first.
    log json NOT NULL DEFAULT '[]',
    PRIMARY KEY (id, ended_at)
) PARTITION BY RANGE (ended_at);
ALTER TABLE inn.jobs_history ALTER COLUMN ended_at SET NOT NULL;
CREATE INDEX jobs_history_app_idx ON inn.jobs_history (app, created_at DESC, id DESC);
CREATE TABLE inn.jobs_history_default PARTITION OF inn.jobs_history DEFAULT;
SELECT inn.ensure_partitions(2);

-- One line more, and one less in front when there are too many. Of a job that has not ended.
CREATE FUNCTION inn.job_say(of_job uuid, line_kind text, line text, line_percent smallint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    UPDATE inn.jobs SET lines = lines + 1, updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond')
    WHERE id = of_job RETURNING lines INTO number;
    INSERT INTO inn.job_lines (job, seq, kind, text, percent)
    VALUES (of_job, number, line_kind, left(line, 1000), line_percent);
    DELETE FROM inn.job_lines WHERE job = of_job AND seq <= number - 1000;
END $$;

-- Ended means ended: the row never changes again, and leaves the hot table only by way of the history.
CREATE FUNCTION inn.job_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'jobs' THEN
        IF EXISTS (SELECT FROM inn.jobs_history h WHERE h.id = OLD.id) THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'job % has no copy in the history', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RAISE EXCEPTION 'job % has ended as % and cannot be changed', OLD.id, OLD.state USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER jobs_final BEFORE UPDATE ON inn.jobs
    FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION inn.job_is_final();
CREATE TRIGGER jobs_leave BEFORE DELETE ON inn.jobs
    FOR EACH ROW EXECUTE FUNCTION inn.job_is_final();
CREATE TRIGGER jobs_history_final BEFORE UPDATE OR DELETE ON inn.jobs_history
    FOR EACH ROW EXECUTE FUNCTION inn.job_is_final();

-- A job of kind 'agent' stands where its request stands, from the same transaction on, whoever changes the request: its
-- holder, its requester, a member, a revocation, a sweep. So the two cannot differ.
ALTER TABLE inn.requests ADD COLUMN job uuid;
ALTER TABLE inn.requests_history ADD COLUMN job uuid;

CREATE FUNCTION inn.job_follows_request() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stands text := CASE NEW.state WHEN 'submitted' THEN 'queued' WHEN 'working' THEN 'running'
        WHEN 'input-required' THEN 'waiting' ELSE NEW.state END;
    asks   text := CASE WHEN NEW.state = 'input-required' THEN (NEW.questions -> -1) ->> 'question' END;
    why    text := CASE WHEN NEW.state IN ('submitted', 'failed', 'canceled') THEN NEW.reason ELSE asks END;
BEGIN
    IF NEW.progress IS NOT NULL AND NEW.progress::text IS DISTINCT FROM OLD.progress::text THEN
        PERFORM inn.job_say(NEW.job, 'progress', NEW.progress ->> 'step', (NEW.progress ->> 'percent')::smallint);
    END IF;
    IF NEW.state <> OLD.state THEN
        PERFORM inn.job_say(NEW.job, 'state', stands || coalesce(': ' || nullif(why, ''), ''), NULL);
    END IF;
    UPDATE inn.jobs SET
        state = stands, attempt = NEW.attempt, epoch = NEW.epoch, next_at = NEW.next_at, lease_until = NEW.lease_until,
        progress = NEW.progress, question = asks, result = NEW.result, past_attempts = NEW.past_attempts,
        -- What stands before the colon of a reason is a word for programs, when it is one.
        error = CASE WHEN NEW.state IN ('failed', 'canceled') THEN json_build_object(
            'code', coalesce(substring(NEW.reason FROM '^([a-z_]+)(?:: .*)?$'), NEW.state),
            'message', coalesce(substring(NEW.reason FROM '^[a-z_]+: (.*)$'), NEW.reason, '')) END,
        updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond'), ended_at = NEW.ended_at
    WHERE id = NEW.job;
    RETURN NULL;
END $$;

-- A heartbeat is nobody's news.
CREATE TRIGGER requests_tell_job AFTER UPDATE ON inn.requests
    FOR EACH ROW WHEN (NEW.job IS NOT NULL AND (NEW.state <> OLD.state OR NEW.attempt <> OLD.attempt
        OR NEW.epoch <> OLD.epoch OR NEW.progress::text IS DISTINCT FROM OLD.progress::text))
    EXECUTE FUNCTION inn.job_follows_request();
