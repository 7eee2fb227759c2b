-- Values of app tables as filters compare them: the rules of SQLite, which PocketBase's language has (numbers written as
-- text, text read as numbers, JSON of any kind). Used by rendered filters only; nothing here looks at a table.

-- A REAL as text: 15 digits when they read back, else 17; whole numbers keep ".0"; exponents have two digits or more.
CREATE FUNCTION inn.real_text(x double precision) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    digits   integer := 15;
    written  text;
    exponent integer;
    mantissa text;
    sign     text := CASE WHEN x < 0 THEN '-' ELSE '' END;
BEGIN
    IF x = 0 THEN
        RETURN '0.0';
    ELSIF abs(x) = 'Infinity' THEN
        RETURN sign || 'Inf';
    END IF;
    written := btrim(to_char(abs(x), '9.99999999999999EEEE'));
    -- Rounded up, the largest numbers would no longer be numbers.
    IF abs(x) > 1.79769313486231e308 OR written::double precision <> abs(x) THEN
        digits := 17;
        written := btrim(to_char(abs(x), '9.9999999999999999EEEE'));
    END IF;
    exponent := split_part(written, 'e', 2)::integer;
    mantissa := rtrim(replace(split_part(written, 'e', 1), '.', ''), '0');
    IF exponent < -4 OR exponent >= digits THEN
        RETURN sign || left(mantissa, 1) || '.' || coalesce(nullif(substr(mantissa, 2), ''), '0')
            || 'e' || CASE WHEN exponent < 0 THEN '-' ELSE '+' END || lpad(abs(exponent)::text, greatest(2, length(abs(exponent)::text)), '0');
    ELSIF exponent < 0 THEN
        RETURN sign || '0.' || repeat('0', -exponent - 1) || mantissa;
    ELSIF length(mantissa) <= exponent + 1 THEN
        RETURN sign || rpad(mantissa, exponent + 1, '0') || '.0';
    END IF;
    RETURN sign || left(mantissa, exponent + 1) || '.' || substr(mantissa, exponent + 2);
END
$$;

-- A number of a column as text: whole numbers below 2^63 have no point.
CREATE FUNCTION inn.number_text(x double precision) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN x = trunc(x) AND abs(x) < 9223372036854775808 THEN x::bigint::text ELSE inn.real_text(x) END;

-- The number a text stands for next to a numeric column, or NULL. Beyond the range where a cast is certain to succeed
-- (more than 100 digits, exponents of 200 and more) only the direction is kept.
CREATE FUNCTION inn.numeric_value(t text) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN t !~ '^[ \t\n\v\f\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\n\v\f\r]*$' THEN NULL
        WHEN t ~ '^[ \t\n\v\f\r]*[+-]?[0-9.]{1,100}([eE][+-]?1?[0-9]{1,2})?[ \t\n\v\f\r]*$' THEN t::double precision
        WHEN t ~ '[eE]-' OR t ~ '^[^eE1-9]*([eE]|$)' OR t ~ '^[ \t\n\v\f\r]*[+-]?0*[.]' AND t !~ '[eE]' THEN 0
        WHEN t ~ '^[ \t\n\v\f\r]*-' THEN '-Infinity'::double precision
        ELSE 'Infinity'::double precision
    END;

-- A JSON value in the order of SQLite: NULL, then numbers (true is 1, false 0), then text (objects and lists are their
-- text). The three functions are the parts of one sort key; parts that do not apply are blank.
CREATE FUNCTION inn.json_rank(j json) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE json_typeof(j) WHEN 'number' THEN 1 WHEN 'boolean' THEN 1 WHEN 'string' THEN 2 WHEN 'object' THEN 2 WHEN 'array' THEN 2 END;

CREATE FUNCTION inn.json_number(j json) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE json_typeof(j)
        WHEN 'number' THEN (j #>> '{}')::double precision
        WHEN 'boolean' THEN CASE j #>> '{}' WHEN 'true' THEN 1 ELSE 0 END
        ELSE 0
    END;

CREATE FUNCTION inn.json_string(j json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE json_typeof(j) WHEN 'string' THEN j #>> '{}' WHEN 'object' THEN j::text WHEN 'array' THEN j::text ELSE '' END;

-- A JSON value as text, the way a text column or LIKE sees it; NULL for null.
CREATE FUNCTION inn.json_text(j json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE json_typeof(j)
        WHEN 'number' THEN
            CASE WHEN (j #>> '{}') ~ '^-?[0-9]+$' THEN inn.number_text((j #>> '{}')::double precision)
                 ELSE inn.real_text((j #>> '{}')::double precision) END
        WHEN 'boolean' THEN CASE j #>> '{}' WHEN 'true' THEN '1' ELSE '0' END
        WHEN 'null' THEN NULL
        WHEN 'string' THEN j #>> '{}'
        ELSE j::text
    END;

-- A JSON value next to a numeric column: the number it is or looks like, or NULL.
CREATE FUNCTION inn.json_numeric(j json) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE json_typeof(j)
        WHEN 'number' THEN inn.json_number(j)
        WHEN 'boolean' THEN inn.json_number(j)
        WHEN 'string' THEN inn.numeric_value(j #>> '{}')
    END;
