-- Fair claims: requests wait in lanes, one per requester; priorities age; what waits out a pause is out of the way;
-- people weigh and cap what is served; identical requests can be told apart from new ones.

ALTER TABLE inn.requests
    -- Whose it is, as far as turns are concerned: the member, or the visitor or app user by name.
    ADD COLUMN lane        text COLLATE "C" GENERATED ALWAYS AS (coalesce(requester_user::text, '~' || requester_label)) STORED,
    -- Its place in the lane: when it was asked, ten minutes earlier or later for each step of priority.
    ADD COLUMN rank        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Waits for nothing but an agent. A sweep sets it when a pause is over.
    ADD COLUMN ready       boolean     NOT NULL DEFAULT true,
    -- Of several with the same key only one waits ('queued'), is worked on ('running'), or one of each ('both').
    ADD COLUMN unique_mode text COLLATE "C" CHECK (unique_mode IN ('queued', 'running', 'both')),
    ADD COLUMN unique_key  bytea,
    ADD CONSTRAINT requests_unique CHECK ((unique_mode IS NULL) = (unique_key IS NULL));

ALTER TABLE inn.requests_history
    ADD COLUMN lane        text COLLATE "C" GENERATED ALWAYS AS (coalesce(requester_user::text, '~' || requester_label)) STORED,
    ADD COLUMN rank        timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN ready       boolean     NOT NULL DEFAULT true,
    ADD COLUMN unique_mode text COLLATE "C",
    ADD COLUMN unique_key  bytea;

UPDATE inn.requests SET rank = created_at + (priority - 3) * interval '10 minutes', ready = next_at <= now()
WHERE ended_at IS NULL;

DROP INDEX inn.requests_waiting_idx, inn.requests_waiting_person_idx, inn.requests_back_off_idx;
CREATE INDEX requests_waiting_idx ON inn.requests (app, capability, lane, rank, id) WHERE state = 'submitted' AND ready;
CREATE INDEX requests_pause_idx ON inn.requests (next_at) WHERE state = 'submitted' AND NOT ready;
-- What is held, for caps.
CREATE INDEX requests_held_idx ON inn.requests (tenant) WHERE state IN ('working', 'input-required');
-- One of each key. What comes back to the queue (epoch > 0) does not count: it must never be lost to a newer one.
CREATE UNIQUE INDEX requests_one_queued_idx ON inn.requests (app, capability, unique_key)
    WHERE state = 'submitted' AND epoch = 0 AND unique_mode IN ('queued', 'both');
CREATE UNIQUE INDEX requests_one_running_idx ON inn.requests (app, capability, unique_key)
    WHERE state IN ('working', 'input-required') AND unique_mode IN ('running', 'both');

-- Weights and caps, in force from the next claim on.
CREATE TABLE inn.queue_limits (
    tenant     uuid NOT NULL REFERENCES inn.tenants (id),
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('tenant', 'app', 'capability', 'person', 'agent')),
    app        uuid REFERENCES inn.apps (id),
    -- A capability's name, a requester's lane, an agent's id; empty for a tenant or an app.
    subject    text COLLATE "C" NOT NULL DEFAULT '',
    weight     smallint NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 100),
    -- Requests held at a time; NULL for any number.
    most       integer CHECK (most >= 0),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((kind IN ('app', 'capability')) = (app IS NOT NULL)),
    CHECK ((kind IN ('tenant', 'app')) = (subject = ''))
);
CREATE UNIQUE INDEX queue_limits_key ON inn.queue_limits
    (tenant, kind, coalesce(app, '00000000-0000-0000-0000-000000000000'::uuid), subject);
