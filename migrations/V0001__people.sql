-- Platform tables live in schema `inn`. Words are text, ids are uuid, times are timestamptz; database time rules.
CREATE SCHEMA inn;

-- One sequence for every epoch: what is taken away and given again never repeats a number, so a commit decided from
-- the earlier state can never pass for one decided from the later.
CREATE SEQUENCE inn.epoch AS bigint;

-- Ends a statement from inside it, so that everything it wrote is rolled back. The verdict is JSON for the store.
CREATE FUNCTION inn.stop(verdict text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'INN01', MESSAGE = 'stopped', DETAIL = verdict;
END
$$;

CREATE TABLE inn.tenants (
    id         uuid PRIMARY KEY,
    slug       text NOT NULL CONSTRAINT tenants_slug_key UNIQUE,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE inn.users (
    id                  uuid PRIMARY KEY,
    email               text NOT NULL,
    -- The address in ASCII lower case: what makes two addresses one.
    email_key           text NOT NULL CONSTRAINT users_email_key UNIQUE,
    -- argon2id, PHC string.
    password            text NOT NULL,
    password_changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    disabled_at         timestamptz
);

CREATE TABLE inn.members (
    tenant     uuid NOT NULL REFERENCES inn.tenants (id),
    user_id    uuid NOT NULL REFERENCES inn.users (id),
    role       text NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')),
    epoch      bigint NOT NULL DEFAULT nextval('inn.epoch'),
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    removed_at timestamptz,
    PRIMARY KEY (tenant, user_id)
);
CREATE INDEX members_user_id_idx ON inn.members (user_id);

CREATE TABLE inn.sessions (
    id               uuid PRIMARY KEY,
    user_id          uuid NOT NULL REFERENCES inn.users (id),
    tenant           uuid NOT NULL REFERENCES inn.tenants (id),
    -- SHA-256 of the session token; the token itself is never kept.
    token            bytea NOT NULL CONSTRAINT sessions_token_key UNIQUE,
    -- Set when the session lives on one app's origin only.
    app              uuid,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    authenticated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz
);
CREATE INDEX sessions_user_id_idx ON inn.sessions (user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_expires_at_idx ON inn.sessions (expires_at);

-- One-time codes that hand a person over to an app's origin.
CREATE TABLE inn.handoffs (
    code       bytea PRIMARY KEY,
    session    uuid NOT NULL REFERENCES inn.sessions (id) ON DELETE CASCADE,
    app        uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX handoffs_expires_at_idx ON inn.handoffs (expires_at);
CREATE INDEX handoffs_session_idx ON inn.handoffs (session);
