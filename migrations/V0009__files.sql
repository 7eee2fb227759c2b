-- Files of records. A row comes before the bytes, and the bytes go before the row: at no moment are there bytes in the
-- object store that no row names. `expected` while the bytes arrive, `received` when all are there, `kept` once a
-- committed record names the file; `doomed` is to be removed, `gone` was removed and is looked at once more (a writer that
-- was late may have left something). Every row that is not kept has a next step, at `due_at`.
CREATE TABLE inn.files (
    -- Names the bytes in the object store.
    id         uuid PRIMARY KEY,
    tenant     uuid NOT NULL,
    app        uuid NOT NULL,
    -- Ids of the model, which outlive renames.
    collection text COLLATE "C" NOT NULL,
    field      text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    record     text COLLATE "C",
    state      text NOT NULL DEFAULT 'expected' CONSTRAINT files_state_check CHECK (state IN ('expected', 'received', 'kept', 'doomed', 'gone')),
    size       bigint NOT NULL DEFAULT 0,
    media_type text NOT NULL DEFAULT '',
    digest     bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    kept_at    timestamptz,
    due_at     timestamptz,
    CONSTRAINT files_name_key UNIQUE (app, collection, name),
    CONSTRAINT files_due_check CHECK ((state = 'kept') = (due_at IS NULL)),
    CONSTRAINT files_kept_check CHECK (state <> 'kept' OR (record IS NOT NULL AND digest IS NOT NULL AND kept_at IS NOT NULL))
);
CREATE INDEX files_record_idx ON inn.files (app, collection, record) WHERE record IS NOT NULL;
-- What a view shows is found by its name alone.
CREATE INDEX files_name_idx ON inn.files (app, name);
-- How much the files of an app take.
CREATE INDEX files_size_idx ON inn.files (app) INCLUDE (size) WHERE state IN ('received', 'kept');
CREATE INDEX files_due_idx ON inn.files (due_at) WHERE due_at IS NOT NULL;

-- Tokens for `?token=` of protected files, by their digest: whose papers they stand for.
CREATE TABLE inn.file_tokens (
    token      bytea PRIMARY KEY,
    app        uuid NOT NULL,
    session    uuid,
    grant_id   uuid,
    helper     text,
    -- What the agent's own token allowed when it took this one.
    scopes     text[] NOT NULL DEFAULT '{}',
    expires_at timestamptz NOT NULL,
    CONSTRAINT file_tokens_holder_check CHECK (num_nonnulls(session, grant_id) = 1)
);
CREATE INDEX file_tokens_expires_at_idx ON inn.file_tokens (expires_at);

-- The names in the file columns of one row. `json`, not `jsonb`: other columns of the row are passed over unread.
CREATE FUNCTION inn.file_names(stored json, columns text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(DISTINCT n.name), '{}')
    FROM unnest(columns) AS c (name)
    CROSS JOIN LATERAL json_array_elements_text(
        CASE json_typeof(stored -> c.name)
            WHEN 'array' THEN stored -> c.name
            WHEN 'string' THEN json_build_array(stored -> c.name)
            ELSE '[]'
        END) AS n (name)
    WHERE n.name <> ''
$$;

-- Keeps `inn.files` in step with the rows that name files, in the transaction that changes them, whoever changes them:
-- a new name must be a file that was received, and one that is named no more is doomed. Arguments: app, collection,
-- and the file columns.
CREATE FUNCTION inn.follow_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_app        uuid := TG_ARGV[0]::uuid;
    this_collection text := TG_ARGV[1];
    before          text[] := '{}';
    after           text[] := '{}';
    wanted          text[];
    kept            integer;
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE inn.files SET state = 'doomed', due_at = clock_timestamp()
        WHERE app = this_app AND collection = this_collection AND record = OLD.id AND state = 'kept';
        RETURN NULL;
    END IF;
    after := inn.file_names(to_json(NEW), TG_ARGV[2:]);
    IF TG_OP = 'UPDATE' THEN
        before := inn.file_names(to_json(OLD), TG_ARGV[2:]);
    END IF;
    wanted := ARRAY(SELECT unnest(after) EXCEPT SELECT unnest(before));
    IF cardinality(wanted) > 0 THEN
        UPDATE inn.files SET state = 'kept', record = NEW.id, kept_at = clock_timestamp(), due_at = NULL
        WHERE app = this_app AND collection = this_collection AND name = ANY (wanted)
            AND state = 'received' AND due_at > clock_timestamp();
        GET DIAGNOSTICS kept = ROW_COUNT;
        IF kept <> cardinality(wanted) THEN
            RAISE EXCEPTION 'a record names a file that is not there' USING ERRCODE = 'INN03';
        END IF;
    END IF;
    UPDATE inn.files SET state = 'doomed', due_at = clock_timestamp()
    WHERE app = this_app AND collection = this_collection AND record = NEW.id AND state = 'kept'
        AND name = ANY (ARRAY(SELECT unnest(before) EXCEPT SELECT unnest(after)));
    RETURN NULL;
END
$$;

-- Makes a table followed, or followed no more when there are no file columns. Rows without files and changes of other
-- columns run no function.
CREATE FUNCTION inn.follow_table(target regclass, app uuid, collection text, columns text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    arguments text;
    filled    text;
    changed   text;
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS "~files_insert" ON %s', target);
    EXECUTE format('DROP TRIGGER IF EXISTS "~files_update" ON %s', target);
    EXECUTE format('DROP TRIGGER IF EXISTS "~files_delete" ON %s', target);
    IF cardinality(columns) = 0 THEN
        RETURN;
    END IF;
    SELECT string_agg(format('%L', argument), ', ' ORDER BY place) INTO arguments
    FROM unnest(ARRAY[app::text, collection] || columns) WITH ORDINALITY AS a (argument, place);
    SELECT string_agg(format('%%1$s.%I::text NOT IN ('''', ''{}'')', name), ' OR '),
           string_agg(format('OLD.%1$I IS DISTINCT FROM NEW.%1$I', name), ' OR ')
    INTO filled, changed FROM unnest(columns) AS c (name);
    EXECUTE format('CREATE TRIGGER "~files_insert" AFTER INSERT ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION inn.follow_files(%s)',
        target, format(filled, 'NEW'), arguments);
    EXECUTE format('CREATE TRIGGER "~files_update" AFTER UPDATE ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION inn.follow_files(%s)',
        target, changed, arguments);
    EXECUTE format('CREATE TRIGGER "~files_delete" AFTER DELETE ON %s FOR EACH ROW EXECUTE FUNCTION inn.follow_files(%s)',
        target, arguments);
END
$$;

-- Apps that were deployed before.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT a.id AS app, c.value ->> 'id' AS collection,
            to_regclass(format('%I.%I', 'app_' || replace(a.id::text, '-', ''), c.value ->> 'name')) AS target,
            ARRAY(SELECT f.value ->> 'name' FROM json_array_elements(c.value -> 'fields') AS f WHERE f.value ->> 'type' = 'file') AS columns
        FROM inn.apps a
        JOIN inn.releases r ON r.app = a.id AND r.digest = a.release
        CROSS JOIN LATERAL json_array_elements(r.definition::json -> 'model' -> 'collections') AS c
        WHERE a.status = 'active' AND c.value ->> 'type' <> 'view'
    LOOP
        IF found.target IS NOT NULL AND cardinality(found.columns) > 0 THEN
            PERFORM inn.follow_table(found.target, found.app, found.collection, found.columns);
        END IF;
    END LOOP;
END
$$;
