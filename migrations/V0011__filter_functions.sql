-- What else PocketBase's filters need (reference notes, sections A.8 and A.10). Used by rendered filters only; nothing here
-- looks at a table.

-- Is a text true where SQLite is asked for truth? The number it begins with is not 0.
CREATE FUNCTION inn.is_true(t text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN t IS NOT NULL THEN
        inn.numeric_value(coalesce(
            substring(t FROM '^[ \t\n\v\f\r]*[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?'), '0'
        )) <> 0
    END;

-- A REAL as text: 15 digits when they read back, else 17; whole numbers keep ".0"; from 1e17 on with an exponent, which has
-- two digits or more. (The function before it began with exponents at 1e15.)
CREATE OR REPLACE FUNCTION inn.real_text(x double precision) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
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
        written := btrim(to_char(abs(x), '9.9999999999999999EEEE'));
    END IF;
    exponent := split_part(written, 'e', 2)::integer;
    mantissa := rtrim(replace(split_part(written, 'e', 1), '.', ''), '0');
    IF exponent < -4 OR exponent >= 17 THEN
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

-- strftime, with the forms of a time value, the modifiers and the letters of SQLite 3.53. Moments are milliseconds since the
-- start of the Julian day numbers, as there. The platform's time zone is UTC, so `localtime` and `utc` move nothing. One
-- thing is left out: SQLite forgets an overflow when one of these two follows; here it stays NULL.

-- Midnight of a day. Months and days may lie beyond theirs, which moves on from there. NULL outside of the calendar.
CREATE FUNCTION inn.midnight(y integer, m integer, d integer) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN y BETWEEN -4713 AND 9999 THEN (
        SELECT (36525 * (c.y + 4716) / 100 + 306001 * (c.m + 1) / 10000 + d + 38 - (c.y + 4800) / 100 + (c.y + 4800) / 400)::bigint * 86400000 - 131716800000
        FROM (SELECT CASE WHEN m <= 2 THEN y - 1 ELSE y END AS y, CASE WHEN m <= 2 THEN m + 12 ELSE m END AS m) AS c
    ) END;

-- The date of a moment, NULL outside of the calendar.
CREATE FUNCTION inn.civil(jd bigint, OUT y integer, OUT m integer, OUT d integer) LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- Since the first of March of the year -4800, which puts the leap day at the end of a year.
    days    integer;
    century integer;
    four    integer;
    month   integer;
BEGIN
    IF jd NOT BETWEEN 0 AND 464269060799999 THEN
        RETURN;
    END IF;
    days := (jd + 43200000) / 86400000 + 32044;
    century := (4 * days + 3) / 146097;
    days := days - 146097 * century / 4;
    four := (4 * days + 3) / 1461;
    days := days - 1461 * four / 4;
    month := (5 * days + 2) / 153;
    d := days - (153 * month + 2) / 5 + 1;
    m := month + 3 - 12 * (month / 10);
    y := 100 * century + four - 4800 + month / 10;
END
$$;

CREATE FUNCTION inn.year_text(y integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN y < 0 THEN '-' || lpad((-y)::text, greatest(3, length((-y)::text)), '0') ELSE lpad(y::text, 4, '0') END;

-- The decimal digits of a float8 from 0 to eight million, all of them: a cast to numeric rounds to fifteen.
CREATE FUNCTION inn.exactly(x double precision) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN x >= 4096 THEN (x * 1099511627776)::bigint / 1099511627776::numeric(80, 60)
        WHEN x >= 32 THEN (x * 1125899906842624)::bigint / 1125899906842624::numeric(80, 60)
        ELSE (x * 144115188075855872)::bigint / 144115188075855872::numeric(80, 60)
    END;

-- Days with their fraction, in sixteen digits.
CREATE FUNCTION inn.julian_text(jd bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN jd >= 86400000 THEN trim_scale(round(inn.exactly(jd / 86400000::float8), 16 - length((jd / 86400000)::text)))::text
        WHEN jd >= 8640 THEN trim_scale(to_char(jd / 86400000::float8, '9.999999999999999EEEE')::numeric)::text
        WHEN jd > 0 THEN regexp_replace(btrim(to_char(jd / 86400000::float8, '9.999999999999999EEEE')), '[.]?0*e', 'e')
        ELSE '0'
    END;

-- Days by which a day lies beyond the end of its month.
CREATE FUNCTION inn.days_beyond(y integer, m integer, d integer) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN d <= 28 OR m IN (1, 3, 5, 7, 8, 10, 12) THEN 0
        WHEN m <> 2 THEN CASE WHEN d = 31 THEN 1 ELSE 0 END
        WHEN y % 4 <> 0 OR y % 100 = 0 AND y % 400 <> 0 THEN d - 28
        ELSE d - 29
    END;

-- Hours, minutes, seconds and the minutes east of Greenwich of `HH:MM[:SS[.F…]][zone]`; NULL when it is none.
CREATE FUNCTION inn.clock_parts(t text) RETURNS double precision[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        SELECT ARRAY[
            p[1]::float8,
            p[2]::float8,
            coalesce(p[3]::float8, 0) + least(coalesce(('0' || left(p[4], 40))::float8, 0), 0.999),
            CASE WHEN p[5] IS NULL OR p[5] IN ('Z', 'z') THEN 0
                 ELSE (left(p[5], 1) || '1')::float8 * (substr(p[5], 2, 2)::float8 * 60 + substr(p[5], 5, 2)::float8) END
        ]
        FROM regexp_match(t, '^([01][0-9]|2[0-4]):([0-5][0-9])(?::([0-5][0-9])([.][0-9]+)?)?[ \t\n\v\f\r]*([Zz]|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?[ \t\n\v\f\r]*$') AS p
        WHERE p IS NOT NULL
    );

-- A moment as date fields keep it, of a day that there is (the 29th of February is left out).
CREATE FUNCTION inn.is_stored_moment(t text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN t ~ '^[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31) (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}Z$';

-- The time is `number` or `value`; NULL without one. `present` is what `now` means.
CREATE FUNCTION inn.strftime(format text, number double precision, value text, modifiers text[], present bigint)
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- What is known of the moment: `jd`, or the date, or the time of day, or several of them. A number is `raw` until
    -- it is clear whether it counts days or seconds.
    jd     bigint;
    y      integer;
    m      integer;
    d      integer;
    h      integer;
    mi     integer;
    s      double precision;
    zone   integer := 0;
    alone  boolean;
    ahead  bigint;
    raw    double precision;
    beyond integer := 0;
    exact  boolean := false;
    -- While reading.
    parts   text[];
    clock   double precision[];
    word    text;
    place   integer := 0;
    amount  double precision;
    rest    text;
    unit    text;
    sign    integer;
    step    integer;
    day     integer;
    z       bigint;
    letter  text;
    written text := '';
    at      integer := 1;
    found   integer;
    january bigint;
    today   bigint;
    other   bigint;
BEGIN
    IF value = '' THEN
        RETURN NULL;
    ELSIF number IS NOT NULL THEN
        raw := number;
    ELSIF inn.is_stored_moment(value) THEN
        y := substr(value, 1, 4);
        m := substr(value, 6, 2);
        d := substr(value, 9, 2);
        h := substr(value, 12, 2);
        mi := substr(value, 15, 2);
        s := substr(value, 18, 6);
        beyond := 0;
    ELSIF value IS NOT NULL THEN
        parts := regexp_match(value, '^(-?)([0-9]{4})-([0-9]{2})-([0-9]{2})[ \t\n\v\f\rT]*(.*)$');
        IF parts IS NOT NULL AND parts[3]::integer BETWEEN 1 AND 12 AND parts[4]::integer BETWEEN 1 AND 31 THEN
            clock := inn.clock_parts(parts[5]);
            IF clock IS NOT NULL OR parts[5] = '' THEN
                y := (parts[1] || parts[2])::integer;
                m := parts[3]::integer;
                d := parts[4]::integer;
                beyond := inn.days_beyond(y, m, d);
            END IF;
        END IF;
        IF y IS NULL THEN
            clock := inn.clock_parts(value);
        END IF;
        IF clock IS NOT NULL THEN
            h := clock[1]::integer;
            mi := clock[2]::integer;
            s := clock[3];
            zone := clock[4]::integer;
            IF zone <> 0 AND y IS NOT NULL THEN
                jd := inn.midnight(y, m, d) + h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint - zone * 60000;
                y := NULL; m := NULL; d := NULL; h := NULL; mi := NULL; s := NULL; zone := 0;
                IF jd IS NULL THEN
                    RETURN NULL;
                END IF;
            END IF;
        ELSIF y IS NULL THEN
            IF lower(value COLLATE "C") = 'now' THEN
                jd := present;
            ELSIF inn.numeric_value(value) IS NOT NULL THEN
                raw := inn.numeric_value(value);
            ELSIF lower(value COLLATE "C") IN ('subsec', 'subsecond') THEN
                exact := true;
                jd := present;
            ELSE
                RETURN NULL;
            END IF;
        END IF;
    ELSE
        RETURN NULL;
    END IF;
    IF raw >= 0 AND raw < 5373484.5 THEN
        jd := trunc(raw * 86400000 + 0.5);
    END IF;

    FOREACH word IN ARRAY modifiers LOOP
        place := place + 1;
        unit := lower(word COLLATE "C");
        IF unit = 'auto' THEN
            IF place > 1 THEN
                RETURN NULL;
            ELSIF raw IS NULL OR jd IS NOT NULL THEN
                raw := NULL;
            ELSIF raw BETWEEN -210866760000 AND 253402300799 THEN
                jd := trunc(raw * 1000 + 210866760000000 + 0.5);
                raw := NULL;
            END IF;
        ELSIF unit = 'julianday' THEN
            IF place > 1 OR raw IS NULL OR jd IS NULL THEN
                RETURN NULL;
            END IF;
            raw := NULL;
        ELSIF unit = 'unixepoch' THEN
            IF place > 1 OR raw IS NULL OR raw < -210866760000 OR raw >= 253402300800 THEN
                RETURN NULL;
            END IF;
            jd := trunc(raw * 1000 + 210866760000000 + 0.5);
            raw := NULL;
        ELSIF unit IN ('subsec', 'subsecond') THEN
            exact := true;
        ELSE
            -- From here on the moment itself is needed, unless a date will do.
            IF unit IN ('start of month', 'start of year', 'start of day') THEN
                IF jd IS NULL AND y IS NULL AND h IS NULL THEN
                    RETURN NULL;
                END IF;
                IF y IS NULL AND jd IS NULL THEN
                    y := 2000; m := 1; d := 1;
                ELSIF y IS NULL THEN
                    SELECT c.y, c.m, c.d INTO y, m, d FROM inn.civil(jd) AS c;
                    IF y IS NULL THEN
                        RETURN NULL;
                    END IF;
                END IF;
                IF unit <> 'start of day' THEN
                    d := 1;
                END IF;
                IF unit = 'start of year' THEN
                    m := 1;
                END IF;
                h := 0; mi := 0; s := 0; zone := 0; raw := NULL; jd := NULL;
                CONTINUE;
            END IF;
            -- A time alone has its zone yet, which some modifiers pass over.
            alone := jd IS NULL AND y IS NULL AND h IS NOT NULL;
            ahead := CASE WHEN alone THEN zone * 60000 ELSE 0 END;
            IF unit = 'utc' AND value ~ '[0-9][ \t\n\v\f\r]*[Zz][ \t\n\v\f\r]*$' THEN
                CONTINUE;
            ELSIF jd IS NULL AND raw IS NOT NULL AND unit IN ('utc', 'localtime') THEN
                jd := CASE unit WHEN 'utc' THEN 0 ELSE inn.midnight(2000, 1, 1) END;
            ELSIF jd IS NULL THEN
                IF raw IS NOT NULL THEN
                    RETURN NULL;
                END IF;
                jd := inn.midnight(coalesce(y, 2000), coalesce(m, 1), coalesce(d, 1));
                IF jd IS NULL THEN
                    RETURN NULL;
                END IF;
                IF h IS NOT NULL THEN
                    jd := jd + h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint - zone * 60000;
                END IF;
            END IF;
            IF unit IN ('localtime', 'ceiling') THEN
                -- Midnights and month ends are these already.
                NULL;
            ELSIF unit = 'utc' THEN
                beyond := 0;
            ELSIF unit = 'floor' THEN
                jd := jd - beyond * 86400000;
            ELSIF unit LIKE 'weekday %' THEN
                amount := inn.numeric_value(substr(unit, 9));
                IF amount IS NULL OR amount < 0 OR amount >= 7 OR amount <> trunc(amount) OR jd NOT BETWEEN 0 AND 464269060799999 THEN
                    RETURN NULL;
                END IF;
                jd := jd + ahead;
                z := (jd + 129600000) / 86400000 % 7;
                jd := jd + (amount::bigint - z - CASE WHEN z > amount THEN -7 ELSE 0 END) * 86400000;
            ELSE
                parts := regexp_match(word, '^([+-])([0-9]{4,5})-([0-9]{2})-([0-9]{2})(?:[ \t\n\v\f\r](.*))?$');
                IF parts IS NOT NULL THEN
                    IF parts[3]::integer > 11 OR parts[4]::integer > 30 OR parts[2]::integer > 14712 THEN
                        RETURN NULL;
                    END IF;
                    sign := CASE parts[1] WHEN '-' THEN -1 ELSE 1 END;
                    amount := sign * (parts[2]::integer * 12 + parts[3]::integer);
                    day := sign * parts[4]::integer;
                    rest := parts[5];
                    IF alone THEN
                        y := 2000; m := 1; d := 1;
                    END IF;
                ELSE
                    ahead := 0;
                    rest := NULL;
                    parts := regexp_match(word, '^([+-]?)([0-9]{2}:.*)$');
                    IF parts IS NOT NULL THEN
                        sign := CASE parts[1] WHEN '-' THEN -1 ELSE 1 END;
                        rest := parts[2];
                        amount := NULL;
                    ELSE
                        parts := regexp_match(unit, '^([-+0-9][^ \t\n\v\f\r:]*)[ \t\n\v\f\r]+([a-z]{3,10})$');
                        amount := inn.numeric_value(parts[1]);
                        unit := CASE WHEN length(parts[2]) >= 3 THEN regexp_replace(parts[2], 's$', '') END;
                        IF amount IS NULL OR unit IS NULL THEN
                            RETURN NULL;
                        END IF;
                        beyond := 0;
                        step := CASE unit WHEN 'second' THEN 1 WHEN 'minute' THEN 60 WHEN 'hour' THEN 3600 WHEN 'day' THEN 86400 END;
                        IF abs(amount) >= (CASE unit WHEN 'second' THEN 464269992787968 WHEN 'minute' THEN 7737900007424 WHEN 'hour' THEN 128969998336
                            WHEN 'day' THEN 5373485 WHEN 'month' THEN 176546 WHEN 'year' THEN 14713 ELSE -1 END) THEN
                            RETURN NULL;
                        END IF;
                        IF step IS NOT NULL THEN
                            jd := jd + trunc(amount * 1000 * step + CASE WHEN amount < 0 THEN -0.5 ELSE 0.5 END)::bigint;
                            amount := NULL;
                        ELSE
                            -- Whole months first; what is left of one counts as thirty days, of a year as 365.
                            z := trunc((amount - trunc(amount)) * 1000 * CASE unit WHEN 'year' THEN 31536000 ELSE 2592000 END
                                + CASE WHEN amount < 0 THEN -0.5 ELSE 0.5 END)::bigint;
                            amount := trunc(amount) * CASE unit WHEN 'year' THEN 12 ELSE 1 END;
                        END IF;
                    END IF;
                END IF;
                IF amount IS NOT NULL THEN
                    -- A date that was written stays as it was written, even beyond the end of its month.
                    IF y IS NULL THEN
                        SELECT c.y, c.m, c.d INTO y, m, d FROM inn.civil(jd) AS c;
                        IF y IS NULL THEN
                            RETURN NULL;
                        END IF;
                    END IF;
                    other := CASE WHEN h IS NULL OR zone <> 0 AND ahead = 0 THEN (jd + 43200000) % 86400000
                        ELSE h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint END;
                    m := m - 1 + amount::integer;
                    y := y + floor(m / 12.0)::integer;
                    m := m - floor(m / 12.0)::integer * 12 + 1;
                    beyond := inn.days_beyond(y, m, d);
                    jd := inn.midnight(y, m, d) + other + CASE WHEN parts[3] IS NULL THEN z ELSE day::bigint * 86400000 - ahead END;
                    IF jd IS NULL THEN
                        RETURN NULL;
                    END IF;
                END IF;
                IF rest IS NOT NULL THEN
                    clock := inn.clock_parts(rest);
                    IF clock IS NULL THEN
                        RETURN NULL;
                    END IF;
                    z := (clock[1] * 3600000 + clock[2] * 60000 + trunc(clock[3] * 1000 + 0.5) - clock[4] * 60000)::bigint;
                    jd := jd + sign * (((z % 86400000) + 86400000) % 86400000);
                END IF;
            END IF;
            y := NULL; m := NULL; d := NULL; h := NULL; mi := NULL; s := NULL; zone := 0; raw := NULL;
        END IF;
    END LOOP;

    IF jd IS NULL THEN
        IF raw IS NOT NULL THEN
            RETURN NULL;
        END IF;
        jd := inn.midnight(coalesce(y, 2000), coalesce(m, 1), coalesce(d, 1));
        IF h IS NOT NULL THEN
            jd := jd + h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint - zone * 60000;
        END IF;
    END IF;
    IF jd IS NULL OR jd NOT BETWEEN 0 AND 464269060799999 THEN
        RETURN NULL;
    END IF;
    IF y IS NULL OR zone <> 0 OR cardinality(modifiers) = 0 AND d > 28 THEN
        SELECT c.y, c.m, c.d INTO y, m, d FROM inn.civil(jd) AS c;
    END IF;
    IF h IS NULL OR zone <> 0 THEN
        other := (jd + 43200000) % 86400000;
        h := other / 3600000;
        mi := other / 60000 % 60;
        s := (other % 60000) / 1000.0;
    END IF;

    today := h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint;

    LOOP
        found := strpos(substr(format, at), '%');
        IF found = 0 THEN
            RETURN written || substr(format, at);
        END IF;
        written := written || substr(format, at, found - 1);
        letter := substr(format, at + found, 1);
        at := at + found + 1;
        IF letter IN ('G', 'g', 'j', 'u', 'U', 'V', 'w', 'W') THEN
            -- Whole days since the first of January, and since Monday.
            january := (jd - inn.midnight(y, 1, 1) - today + 43200000) / 86400000;
            z := (jd + 43200000) / 86400000 % 7;
        END IF;
        CASE letter
            WHEN 'd' THEN written := written || lpad(d::text, 2, '0');
            WHEN 'e' THEN written := written || lpad(d::text, 2, ' ');
            WHEN 'f' THEN written := written || to_char(inn.exactly(least(s, 59.999)), 'FM00.000');
            WHEN 'F' THEN written := written || inn.year_text(y) || '-' || lpad(m::text, 2, '0') || '-' || lpad(d::text, 2, '0');
            WHEN 'G', 'g', 'V' THEN
                -- The week belongs to the year of its Thursday.
                other := jd + (3 - z) * 86400000;
                SELECT c.y INTO step FROM inn.civil(other) AS c;
                IF letter = 'G' THEN
                    written := written || inn.year_text(step);
                ELSIF letter = 'g' THEN
                    written := written || lpad((step % 100)::text, greatest(2, length((step % 100)::text)), '0');
                ELSE
                    written := written || lpad(((other - inn.midnight(step, 1, 1) - today + 43200000) / 86400000 / 7 + 1)::text, 2, '0');
                END IF;
            WHEN 'H' THEN written := written || lpad(h::text, 2, '0');
            WHEN 'k' THEN written := written || lpad(h::text, 2, ' ');
            WHEN 'I' THEN written := written || lpad(CASE WHEN h > 12 THEN h - 12 WHEN h = 0 THEN 12 ELSE h END::text, 2, '0');
            WHEN 'l' THEN written := written || lpad(CASE WHEN h > 12 THEN h - 12 WHEN h = 0 THEN 12 ELSE h END::text, 2, ' ');
            WHEN 'j' THEN written := written || lpad((january + 1)::text, 3, '0');
            WHEN 'J' THEN written := written || inn.julian_text(jd);
            WHEN 'm' THEN written := written || lpad(m::text, 2, '0');
            WHEN 'M' THEN written := written || lpad(mi::text, 2, '0');
            WHEN 'p' THEN written := written || CASE WHEN h >= 12 THEN 'PM' ELSE 'AM' END;
            WHEN 'P' THEN written := written || CASE WHEN h >= 12 THEN 'pm' ELSE 'am' END;
            WHEN 'R' THEN written := written || lpad(h::text, 2, '0') || ':' || lpad(mi::text, 2, '0');
            WHEN 's' THEN
                written := written || CASE WHEN exact THEN ((jd - 210866760000000)::numeric / 1000)::numeric(20, 3)::text
                    ELSE (jd / 1000 - 210866760000)::text END;
            WHEN 'S' THEN written := written || lpad(trunc(s)::text, 2, '0');
            WHEN 'T' THEN written := written || lpad(h::text, 2, '0') || ':' || lpad(mi::text, 2, '0') || ':' || lpad(trunc(s)::text, 2, '0');
            WHEN 'u' THEN written := written || (z + 1)::text;
            WHEN 'U' THEN written := written || lpad(((january + 7 - (z + 1) % 7) / 7)::text, 2, '0');
            WHEN 'w' THEN written := written || ((z + 1) % 7)::text;
            WHEN 'W' THEN written := written || lpad(((january + 7 - z) / 7)::text, 2, '0');
            WHEN 'Y' THEN written := written || inn.year_text(y);
            WHEN '%' THEN written := written || '%';
            ELSE RETURN NULL;
        END CASE;
    END LOOP;
END
$$;
