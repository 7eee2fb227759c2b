-- Accounts of an app's own users. The accounts themselves are records of the app's auth collections; here is what the
-- platform keeps about them.

-- What the tokens of an app's users are made with, sealed by a key that is not in this database (key directory,
-- secret-<key>.key). Made by the first token that is given out; never changed.
CREATE TABLE inn.app_secrets (
    app        uuid        NOT NULL REFERENCES inn.apps (id),
    purpose    text        NOT NULL,
    key        bigint      NOT NULL,
    -- Nonce, ciphertext and tag.
    sealed     bytea       NOT NULL CHECK (octet_length(sealed) >= 40),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app, purpose)
);

-- When the last mail of a purpose went to a record: nobody's mailbox is filled through us.
CREATE TABLE inn.app_mails (
    app     uuid        NOT NULL REFERENCES inn.apps (id),
    purpose text        NOT NULL,
    record  text COLLATE "C" NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app, purpose, record)
);
CREATE INDEX app_mails_sent_at_idx ON inn.app_mails (sent_at);

-- The first half of a sign-in that has two: a one-time password that was mailed, a first factor that was right.
CREATE TABLE inn.app_tickets (
    app        uuid        NOT NULL REFERENCES inn.apps (id),
    kind       text        NOT NULL CHECK (kind IN ('otp', 'mfa')),
    id         text COLLATE "C" NOT NULL,
    collection text        NOT NULL,
    record     text COLLATE "C" NOT NULL,
    -- SHA-256 of the record's tokenKey then: a new one ends the ticket.
    token_key  bytea       NOT NULL CHECK (octet_length(token_key) = 32),
    -- Keyed digest of the code, or the name of the first factor.
    proof      bytea       NOT NULL,
    attempts   integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (app, kind, id)
);
CREATE INDEX app_tickets_expires_at_idx ON inn.app_tickets (expires_at);
CREATE INDEX app_tickets_record_idx ON inn.app_tickets (app, record);

-- Is this record there, and its tokenKey still the one a caller's token was made with? `spec` is JSON: the quoted name
-- of the table, the record, the SHA-256 of the key in hex. The lock waits for a change of the key (its unique index makes
-- it one of the row's keys) and for nothing else that happens to the record.
CREATE FUNCTION inn.app_user_live(spec text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    wanted json := spec::json;
    found  boolean;
BEGIN
    IF spec IS NULL THEN
        RETURN true;
    ELSIF to_regclass(wanted ->> 'table') IS NULL THEN
        -- The app, or the collection, is gone.
        RETURN false;
    END IF;
    EXECUTE format('SELECT true FROM %s AS t WHERE t.id = $1 AND sha256(convert_to(t."tokenKey", ''UTF8'')) = decode($2, ''hex'') FOR KEY SHARE',
        wanted ->> 'table') INTO found USING wanted ->> 'record', wanted ->> 'key';
    RETURN found IS TRUE;
END
$$;
