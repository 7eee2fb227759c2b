-- What happened to records: one row per record and committed write, in the transaction of the write. Realtime is fed from
-- it (ADR 0016). Kept for an hour and then swept; until then never changed.
CREATE TABLE inn.changes (
    -- Drawn while the record is locked, so that of two changes of one record the later one has the higher number.
    id         bigint GENERATED ALWAYS AS IDENTITY,
    -- Readers ask which transactions they have not seen yet: numbers are given before commits, in another order.
    txid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    app        uuid NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    verb       text NOT NULL CONSTRAINT changes_verb_check CHECK (verb IN ('create', 'update', 'delete')),
    -- Name of the collection, then.
    collection text COLLATE "C" NOT NULL,
    record     text COLLATE "C" NOT NULL,
    -- JSON of the record after the write; of a deleted one as it was. Without passwords and token keys.
    "row"      text NOT NULL,
    PRIMARY KEY (txid, id)
);
CREATE TRIGGER append_only BEFORE UPDATE ON inn.changes FOR EACH ROW EXECUTE FUNCTION inn.append_only();

-- `inn.app_user_live` without its lock: for those who look every moment and write nothing.
CREATE FUNCTION inn.app_user_there(spec text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    wanted json := spec::json;
    found  boolean;
BEGIN
    IF to_regclass(wanted ->> 'table') IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT true FROM %s AS t WHERE t.id = $1 AND sha256(convert_to(t."tokenKey", ''UTF8'')) = decode($2, ''hex'')',
        wanted ->> 'table') INTO found USING wanted ->> 'record', wanted ->> 'key';
    RETURN found IS TRUE;
END
$$;
