-- The queue grows up: claims are acknowledged, attempts have a hard end, holders may ask back, dead letters can be
-- replayed, and what became of earlier attempts stays with the request.

ALTER TABLE inn.requests
    -- Whether the holder has spoken since it claimed.
    ADD COLUMN acknowledged  boolean     NOT NULL DEFAULT true,
    ADD COLUMN hard_seconds  integer     NOT NULL DEFAULT 86400 CHECK (hard_seconds > 0),
    ADD COLUMN hard_until    timestamptz,
    -- 1 is served first, 5 last, among the requests of one requester.
    ADD COLUMN priority      smallint    NOT NULL DEFAULT 3 CHECK (priority BETWEEN 1 AND 5),
    ADD COLUMN questions     json        NOT NULL DEFAULT '[]',
    ADD COLUMN past_attempts json        NOT NULL DEFAULT '[]',
    ADD COLUMN replay_of     uuid,
    DROP CONSTRAINT requests_state_check,
    ADD CONSTRAINT requests_state_check
        CHECK (state IN ('submitted', 'working', 'input-required', 'completed', 'failed', 'canceled')),
    DROP CONSTRAINT requests_held,
    ADD CONSTRAINT requests_held CHECK (state NOT IN ('working', 'input-required')
        OR (holder IS NOT NULL AND holder_grant IS NOT NULL AND lease_until IS NOT NULL));

ALTER TABLE inn.requests_history
    ADD COLUMN acknowledged  boolean     NOT NULL DEFAULT true,
    ADD COLUMN hard_seconds  integer     NOT NULL DEFAULT 86400,
    ADD COLUMN hard_until    timestamptz,
    ADD COLUMN priority      smallint    NOT NULL DEFAULT 3,
    ADD COLUMN questions     json        NOT NULL DEFAULT '[]',
    ADD COLUMN past_attempts json        NOT NULL DEFAULT '[]',
    ADD COLUMN replay_of     uuid;

-- What the sweeps walk along: every held row has a deadline, whatever its holder waits for.
DROP INDEX inn.requests_lease_idx;
CREATE INDEX requests_lease_idx ON inn.requests (lease_until) WHERE state IN ('working', 'input-required');
