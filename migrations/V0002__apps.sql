-- An installed app. The row of a removed app stays, so that its slug is never given to another tenant.
CREATE TABLE inn.apps (
    id         uuid PRIMARY KEY,
    tenant     uuid NOT NULL REFERENCES inn.tenants (id),
    slug       text NOT NULL CONSTRAINT apps_slug_key UNIQUE,
    -- The active release; null until a first deploy succeeded and after removal.
    release    bytea,
    -- Moves on with every activation.
    epoch      bigint NOT NULL DEFAULT nextval('inn.epoch'),
    -- Capabilities the owner consented to.
    consented  text[] NOT NULL DEFAULT '{}',
    status     text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'removed')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX apps_tenant_idx ON inn.apps (tenant);

CREATE TABLE inn.releases (
    app           uuid NOT NULL REFERENCES inn.apps (id),
    digest        bytea NOT NULL,
    -- SHA-256 of the archive as uploaded: the blob's name.
    archive       bytea NOT NULL,
    archive_bytes bigint NOT NULL,
    version       text NOT NULL DEFAULT '',
    definition    json NOT NULL,
    files         json NOT NULL,
    ui_files      json NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    activated_at  timestamptz,
    failure       text,
    PRIMARY KEY (app, digest)
);
