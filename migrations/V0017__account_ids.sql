-- An id belongs to one account of an app, whichever of its auth collections that is in: rules know who asks by the id alone.

-- Is there an account with this id in one of these tables (quoted names)? Two that are made at one moment wait for each other:
-- the look comes after the lock and sees what the other has committed.
CREATE FUNCTION inn.account_elsewhere(app uuid, tables text[], account text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    other text;
    found boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('account ' || app::text || ' ' || account, 0));
    FOREACH other IN ARRAY tables LOOP
        EXECUTE format('SELECT true FROM %s AS t WHERE t.id = $1', other) INTO found USING account;
        IF found THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;
