-- The queue: work apps ask of agents. Waiting and held rows are hot; ended ones move to a history partitioned by time,
-- so that dead rows never slow the claims (DESIGN section 7).

CREATE TABLE inn.requests (
    id              uuid PRIMARY KEY,
    tenant          uuid        NOT NULL REFERENCES inn.tenants (id),
    app             uuid        NOT NULL REFERENCES inn.apps (id),
    capability      text COLLATE "C" NOT NULL,
    payload         json        NOT NULL,
    state           text COLLATE "C" NOT NULL DEFAULT 'submitted'
                    CHECK (state IN ('submitted', 'working', 'completed', 'failed', 'canceled')),
    -- The member who asked; empty for a visitor or a user of the app's own.
    requester_user  uuid,
    requester_label text        NOT NULL,
    -- Claims that count, and how many may.
    attempt         integer     NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND attempts),
    attempts        integer     NOT NULL CHECK (attempts > 0),
    -- Moves on with every claim and every loss of one: fences late answers.
    epoch           bigint      NOT NULL DEFAULT 0,
    -- The agent that holds it, and the grant it claimed under. Kept when it ends: who answered.
    holder          text COLLATE "C",
    holder_grant    uuid,
    -- The agents that held it at some time (the last 32), who may still look at it.
    held_by         text[]      NOT NULL DEFAULT '{}',
    lease_seconds   integer     NOT NULL CHECK (lease_seconds > 0),
    lease_until     timestamptz,
    -- Waiting: not to be claimed before this moment, and given up after the other one.
    next_at         timestamptz NOT NULL DEFAULT now(),
    waits_until     timestamptz NOT NULL DEFAULT now() + interval '7 days',
    progress        json,
    result          json,
    reason          text,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at        timestamptz,
    -- Nothing silently stuck (DESIGN invariant 10): a held row has a holder and a deadline, an ended one its moment.
    CONSTRAINT requests_held CHECK (state <> 'working' OR (holder IS NOT NULL AND holder_grant IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT requests_waiting CHECK (state <> 'submitted' OR (holder IS NULL AND holder_grant IS NULL AND lease_until IS NULL)),
    CONSTRAINT requests_ended CHECK ((state IN ('completed', 'failed', 'canceled')) = (ended_at IS NOT NULL))
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.0,
    autovacuum_analyze_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What a claim walks along: waiting rows only, oldest first, everybody's or one person's.
CREATE INDEX requests_waiting_idx ON inn.requests (app, capability, created_at, id) WHERE state = 'submitted';
CREATE INDEX requests_waiting_person_idx ON inn.requests (app, capability, requester_user, created_at, id)
    WHERE state = 'submitted' AND requester_user IS NOT NULL;
-- What the sweeps walk along: leases, ends of patience, ends of back-off, rows to move away.
CREATE INDEX requests_lease_idx ON inn.requests (lease_until) WHERE state = 'working';
CREATE INDEX requests_patience_idx ON inn.requests (waits_until) WHERE state = 'submitted';
CREATE INDEX requests_back_off_idx ON inn.requests (next_at) WHERE state = 'submitted' AND attempt > 0;
CREATE INDEX requests_ended_idx ON inn.requests (ended_at) WHERE ended_at IS NOT NULL;
-- What an app lists, and how many it has open.
CREATE INDEX requests_app_idx ON inn.requests (app, created_at DESC, id DESC);
CREATE INDEX requests_open_idx ON inn.requests (app) WHERE ended_at IS NULL;

CREATE TABLE inn.requests_history (
    LIKE inn.requests INCLUDING DEFAULTS,
    PRIMARY KEY (id, ended_at)
) PARTITION BY RANGE (ended_at);
ALTER TABLE inn.requests_history ALTER COLUMN ended_at SET NOT NULL;

CREATE INDEX requests_history_app_idx ON inn.requests_history (app, created_at DESC, id DESC);

CREATE TABLE inn.requests_history_default PARTITION OF inn.requests_history DEFAULT;
SELECT inn.ensure_partitions(2);

-- Ended means ended: the row never changes again, and leaves the hot table only by way of the history.
CREATE FUNCTION inn.request_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'requests' THEN
        IF EXISTS (SELECT FROM inn.requests_history h WHERE h.id = OLD.id) THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'request % has no copy in the history', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RAISE EXCEPTION 'request % has ended as % and cannot be changed', OLD.id, OLD.state USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER requests_final BEFORE UPDATE ON inn.requests
    FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION inn.request_is_final();
CREATE TRIGGER requests_leave BEFORE DELETE ON inn.requests
    FOR EACH ROW EXECUTE FUNCTION inn.request_is_final();
CREATE TRIGGER requests_history_final BEFORE UPDATE OR DELETE ON inn.requests_history
    FOR EACH ROW EXECUTE FUNCTION inn.request_is_final();
