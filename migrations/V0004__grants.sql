-- Agents, what they ask for, what people granted, and the tokens minted from it (DESIGN section 5).

-- Base64url without padding (RFC 4648 section 5), the form of key thumbprints and public keys on the wire.
CREATE FUNCTION inn.base64url(bytes bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN rtrim(translate(encode(bytes, 'base64'), E'+/\n', '-_'), '=');

CREATE TABLE inn.agents (
    -- RFC 7638 thumbprint of the key.
    id            text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) = 43),
    public_key    bytea       NOT NULL CHECK (octet_length(public_key) = 32),
    -- Claimed by the agent itself.
    name          text        NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE inn.grants (
    id              uuid PRIMARY KEY,
    tenant          uuid        NOT NULL REFERENCES inn.tenants (id),
    app             uuid        NOT NULL REFERENCES inn.apps (id),
    -- No foreign key: a loopback grant belongs to a token file, not to a registered key.
    agent           text COLLATE "C" NOT NULL,
    user_id         uuid        NOT NULL REFERENCES inn.users (id),
    scopes          text[]      NOT NULL,
    others_requests boolean     NOT NULL DEFAULT false,
    plain_token     boolean     NOT NULL DEFAULT false,
    loopback        boolean     NOT NULL DEFAULT false,
    loopback_token  bytea CONSTRAINT grants_loopback_token_key UNIQUE CHECK (octet_length(loopback_token) = 32),
    app_record      text,
    -- From one sequence for everything that fences, so a number never comes back.
    epoch           bigint      NOT NULL DEFAULT nextval('inn.epoch'),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at      timestamptz,
    CHECK (loopback OR loopback_token IS NULL)
);

CREATE INDEX grants_tenant_idx ON inn.grants (tenant, created_at DESC);
CREATE INDEX grants_agent_idx ON inn.grants (agent) WHERE revoked_at IS NULL;
CREATE INDEX grants_user_idx ON inn.grants (tenant, user_id) WHERE revoked_at IS NULL;
-- One live token file per app.
CREATE UNIQUE INDEX grants_loopback_key ON inn.grants (app) WHERE loopback AND revoked_at IS NULL;

CREATE TABLE inn.grant_requests (
    id         uuid PRIMARY KEY,
    tenant     uuid        NOT NULL REFERENCES inn.tenants (id),
    app        uuid        NOT NULL REFERENCES inn.apps (id),
    agent      text COLLATE "C" NOT NULL REFERENCES inn.agents (id),
    code       text        NOT NULL,
    scopes     text[]      NOT NULL,
    reason     text        NOT NULL,
    -- "Expired" is not a state: it is pending after its time.
    status     text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'refused')),
    grant_id   uuid REFERENCES inn.grants (id),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    CHECK ((status = 'approved') = (grant_id IS NOT NULL)),
    CHECK ((status = 'pending') = (decided_at IS NULL))
);

CREATE INDEX grant_requests_tenant_idx ON inn.grant_requests (tenant, created_at DESC);
CREATE INDEX grant_requests_pending_idx ON inn.grant_requests (agent, app) WHERE status = 'pending';

-- Tokens themselves are never kept: their digests are, so that a revocation can say how many it ended.
CREATE TABLE inn.tokens (
    digest    bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    grant_id  uuid        NOT NULL REFERENCES inn.grants (id),
    expires   timestamptz NOT NULL,
    minted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX tokens_grant_idx ON inn.tokens (grant_id, expires);

-- A session on an app's origin ends with the platform session it was handed over from.
ALTER TABLE inn.sessions ADD COLUMN parent uuid;
CREATE INDEX sessions_parent_idx ON inn.sessions (parent) WHERE parent IS NOT NULL AND ended_at IS NULL;
