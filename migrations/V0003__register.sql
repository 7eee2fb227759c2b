-- The register: one entry per call of a verified caller, appended and never changed. Partitioned by month from the
-- start; `inn.ensure_partitions` keeps months ahead, the default partitions catch what falls outside.
CREATE TABLE inn.entries (
    call      uuid NOT NULL,
    tenant    uuid NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The transaction that wrote it: the sealer reads below the oldest running one, since times are not commit order.
    txid      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    app       uuid,
    caller    text NOT NULL,
    user_id   uuid,
    agent     text,
    grant_id  uuid,
    action    text NOT NULL,
    target    text NOT NULL,
    -- Canonical JSON (RFC 8785): the text the digest is taken over.
    facts     text NOT NULL,
    outcome   text NOT NULL,
    effect    bytea,
    digest    bytea NOT NULL,
    PRIMARY KEY (call, at)
) PARTITION BY RANGE (at);
CREATE INDEX entries_tenant_at_idx ON inn.entries (tenant, at DESC, call DESC);
CREATE INDEX entries_tenant_txid_idx ON inn.entries (tenant, txid, call);
CREATE INDEX entries_grant_idx ON inn.entries (tenant, grant_id, at DESC) WHERE grant_id IS NOT NULL;
CREATE INDEX entries_app_idx ON inn.entries (tenant, app, at DESC) WHERE app IS NOT NULL;

-- The receipt of a write. A record write keeps the shape of its sentence, the stored row and the labels the sentence
-- needs; everything else keeps its sentence and the committed facts as `row`.
CREATE TABLE inn.receipts (
    call     uuid NOT NULL,
    tenant   uuid NOT NULL,
    app      uuid,
    at       timestamptz NOT NULL,
    action   text NOT NULL,
    entity   text,
    record   text,
    verb     text,
    sentence text,
    shape    text,
    "row"    text NOT NULL,
    labels   text,
    PRIMARY KEY (call, at)
) PARTITION BY RANGE (at);

CREATE FUNCTION inn.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'INN02';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON inn.entries FOR EACH ROW EXECUTE FUNCTION inn.append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON inn.receipts FOR EACH ROW EXECUTE FUNCTION inn.append_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON inn.entries EXECUTE FUNCTION inn.append_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON inn.receipts EXECUTE FUNCTION inn.append_only();

-- Creates the partitions of this month (UTC) and the next `months` months of every table partitioned by time.
-- Answers how many were created. A month whose rows already went to the default partition is left alone with a warning.
CREATE FUNCTION inn.ensure_partitions(months integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    parent  record;
    start   timestamp;
    part    text;
    created integer := 0;
BEGIN
    -- Two nodes doing this at the same time would both try to create one partition.
    PERFORM pg_advisory_xact_lock(hashtextextended('inn.ensure_partitions', 0));
    FOR parent IN
        SELECT c.relname
        FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'inn' AND p.partstrat = 'r'
        ORDER BY c.relname
    LOOP
        FOR ahead IN 0..greatest(months, 0) LOOP
            start := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + make_interval(months => ahead);
            part := parent.relname || '_' || to_char(start, 'YYYY_MM');
            IF to_regclass('inn.' || quote_ident(part)) IS NOT NULL THEN
                CONTINUE;
            END IF;
            BEGIN
                EXECUTE format('CREATE TABLE inn.%I PARTITION OF inn.%I FOR VALUES FROM (%L) TO (%L)', part, parent.relname,
                    start AT TIME ZONE 'UTC', (start + interval '1 month') AT TIME ZONE 'UTC');
                IF parent.relname IN ('entries', 'receipts') THEN
                    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON inn.%I EXECUTE FUNCTION inn.append_only()', part);
                END IF;
                created := created + 1;
            EXCEPTION WHEN check_violation THEN
                RAISE WARNING 'partition % not created: its rows are in the default partition', part;
            END;
        END LOOP;
    END LOOP;
    RETURN created;
END
$$;

CREATE TABLE inn.entries_default PARTITION OF inn.entries DEFAULT;
CREATE TABLE inn.receipts_default PARTITION OF inn.receipts DEFAULT;
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON inn.entries_default EXECUTE FUNCTION inn.append_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON inn.receipts_default EXECUTE FUNCTION inn.append_only();
SELECT inn.ensure_partitions(2);

-- A signed call counts once. Rows are dropped after the signature's own expiry.
CREATE TABLE inn.nonces (
    agent   text COLLATE "C" NOT NULL,
    nonce   text COLLATE "C" NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (agent, nonce)
);
CREATE INDEX nonces_expires_idx ON inn.nonces (expires);

-- Idempotency keys, kept 24 hours. `scope_app` is the nil uuid for calls on the platform.
CREATE TABLE inn.idempotency (
    scope_app  uuid NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    route      text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    body       bytea NOT NULL,
    call       uuid NOT NULL,
    record     text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope_app, scope, route, key)
);
CREATE INDEX idempotency_created_at_idx ON inn.idempotency (created_at);

-- Events of committed calls, read below the oldest running transaction, in (txid, id) order.
CREATE TABLE inn.outbox (
    id     bigint GENERATED ALWAYS AS IDENTITY,
    txid   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    tenant uuid NOT NULL,
    app    uuid,
    topic  text NOT NULL,
    body   json NOT NULL,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (txid, id)
);
CREATE INDEX outbox_at_idx ON inn.outbox (at);

-- The chain of a tenant: chain = SHA-256(chain before it || digest of the entry).
CREATE TABLE inn.sealed (
    tenant uuid NOT NULL,
    seq    bigint NOT NULL,
    call   uuid NOT NULL,
    -- With the call the key of the entry: a call whose commit was unknown to the node may have two.
    at     timestamptz NOT NULL,
    chain  bytea NOT NULL,
    PRIMARY KEY (tenant, seq),
    CONSTRAINT sealed_entry_key UNIQUE (tenant, call, at)
);

-- Signed heads: everything up to `seq` is fixed by `head`.
CREATE TABLE inn.heads (
    tenant    uuid NOT NULL,
    seq       bigint NOT NULL,
    head      bytea NOT NULL,
    at        timestamptz NOT NULL,
    key       text NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

-- How far a tenant is sealed, and which sealer holds it. The row lock keeps two sealers from forking the chain; the
-- lease only keeps them from doing the same work.
CREATE TABLE inn.seal_state (
    tenant      uuid PRIMARY KEY,
    txid        xid8 NOT NULL DEFAULT '0',
    call        uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    seq         bigint NOT NULL DEFAULT 0,
    head        bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    holder      uuid
);
