-- Writes made under a claim: what stands beside a call's other live checks, in one argument.
--
-- `spec` is JSON. `claim` {request, epoch, agent}: the agent holds the request under this epoch, and does until the
-- transaction ends; when it does not, the statement ends through `inn.stop`, saying what became of the request to whoever
-- held it once. `table`, `record`, `key`: see `inn.app_user_live`.
CREATE FUNCTION inn.call_live(spec text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    wanted json := spec::json;
    claim  json := wanted -> 'claim';
    held   record;
BEGIN
    IF claim IS NOT NULL THEN
        SELECT r.state, r.epoch, r.holder, claim ->> 'agent' = ANY (r.held_by) AS known INTO held
        FROM inn.requests r WHERE r.id = (claim ->> 'request')::uuid FOR SHARE;
        IF NOT FOUND OR held.state NOT IN ('working', 'input-required') OR held.epoch <> (claim ->> 'epoch')::bigint
            OR held.holder <> claim ->> 'agent' THEN
            PERFORM inn.stop(json_build_object('claim_lost',
                CASE WHEN held.known THEN json_build_object('state', held.state, 'epoch', held.epoch) ELSE '{}' END)::text);
        END IF;
    END IF;
    RETURN wanted ->> 'table' IS NULL OR inn.app_user_live(spec);
END
$$;
