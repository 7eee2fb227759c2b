-- strftime keeps what SQLite knows of a moment while modifiers change it, also when it has left the calendar: `utc` and
-- `localtime` forget that it did, and go on from a day that nobody asked for.

-- What is known of a moment, as SQLite knows it: milliseconds of Julian days, the date, the time of day, or several of
-- them. A number is `raw` until it is clear whether it counts days or seconds. `zone` are minutes east of Greenwich that
-- `h`, `mi` and `s` still have. `astray` once it was outside of the calendar; nothing else is then known of it.
CREATE TYPE inn.moment AS (
    jd bigint, y integer, m integer, d integer, h integer, mi integer, s double precision, zone integer, raw double precision,
    beyond integer, exact boolean, is_utc boolean, is_local boolean, astray boolean
);

CREATE FUNCTION inn.gone_astray() RETURNS inn.moment LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, false, false, false, true)::inn.moment;

CREATE FUNCTION inn.time_of_day(h integer, mi integer, s double precision) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN h * 3600000 + mi * 60000 + trunc(s * 1000 + 0.5)::bigint;

-- The same moment with its `jd`. A date that is not known is the first of January 2000.
CREATE FUNCTION inn.with_jd(t inn.moment) RETURNS inn.moment LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF t.jd IS NOT NULL THEN
        RETURN t;
    END IF;
    IF t.raw IS NULL THEN
        t.jd := CASE WHEN t.y IS NULL THEN inn.midnight(2000, 1, 1) ELSE inn.midnight(t.y, t.m, t.d) END;
    END IF;
    IF t.jd IS NULL THEN
        RETURN inn.gone_astray();
    END IF;
    IF t.h IS NOT NULL THEN
        t.jd := t.jd + inn.time_of_day(t.h, t.mi, t.s);
        IF t.zone <> 0 THEN
            t.jd := t.jd - t.zone * 60000;
            t.y := NULL;
            t.h := NULL;
            t.zone := 0;
            t.is_utc := true;
            t.is_local := false;
        END IF;
    END IF;
    RETURN t;
END
$$;

-- The same moment with its date, and with its time of day where that is asked for.
CREATE FUNCTION inn.with_date(t inn.moment, and_time boolean) RETURNS inn.moment LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    rest bigint;
BEGIN
    IF t.y IS NULL THEN
        IF t.jd IS NULL THEN
            t.y := 2000; t.m := 1; t.d := 1;
        ELSE
            SELECT c.y, c.m, c.d INTO t.y, t.m, t.d FROM inn.civil(t.jd) AS c;
            IF t.y IS NULL THEN
                t := inn.gone_astray();
            END IF;
        END IF;
    END IF;
    IF and_time AND t.h IS NULL THEN
        t := inn.with_jd(t);
        rest := (coalesce(t.jd, 0) + 43200000) % 86400000;
        t.h := rest / 3600000;
        t.mi := rest / 60000 % 60;
        t.s := (rest % 60000) / 1000.0;
        t.raw := NULL;
    END IF;
    RETURN t;
END
$$;

-- The same moment so many months later, of which days that its last month does not have are told as `beyond`.
CREATE FUNCTION inn.months_later(t inn.moment, count integer) RETURNS inn.moment LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    t := inn.with_date(t, true);
    IF t.y IS NOT NULL THEN
        t.m := t.m - 1 + count;
        t.y := t.y + floor(t.m / 12.0)::integer;
        t.m := t.m - floor(t.m / 12.0)::integer * 12 + 1;
        t.beyond := inn.days_beyond(t.y, t.m, t.d);
    END IF;
    t.jd := NULL;
    RETURN inn.with_jd(t);
END
$$;

-- What the time value of strftime says; NULL when it says nothing. `present` is what `now` means.
CREATE FUNCTION inn.moment_of(number double precision, value text, present bigint) RETURNS inn.moment LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    t     inn.moment := ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, false, false, false, false)::inn.moment;
    parts text[];
    clock double precision[];
BEGIN
    IF value = '' THEN
        RETURN NULL;
    ELSIF number IS NOT NULL THEN
        t.raw := number;
    ELSIF inn.is_stored_moment(value) THEN
        t.y := substr(value, 1, 4);
        t.m := substr(value, 6, 2);
        t.d := substr(value, 9, 2);
        t.h := substr(value, 12, 2);
        t.mi := substr(value, 15, 2);
        t.s := substr(value, 18, 6);
        t.is_utc := true;
        RETURN t;
    ELSIF value IS NOT NULL THEN
        parts := regexp_match(value, '^(-?)([0-9]{4})-([0-9]{2})-([0-9]{2})[ \t\n\v\f\rT]*(.*)$');
        IF parts IS NOT NULL AND parts[3]::integer BETWEEN 1 AND 12 AND parts[4]::integer BETWEEN 1 AND 31 THEN
            clock := inn.clock_parts(parts[5]);
            IF clock IS NOT NULL OR parts[5] = '' THEN
                t.y := (parts[1] || parts[2])::integer;
                t.m := parts[3]::integer;
                t.d := parts[4]::integer;
                t.beyond := inn.days_beyond(t.y, t.m, t.d);
            END IF;
        END IF;
        IF t.y IS NULL THEN
            clock := inn.clock_parts(value);
        END IF;
        IF clock IS NOT NULL THEN
            t.h := clock[1]::integer;
            t.mi := clock[2]::integer;
            t.s := clock[3];
            t.zone := clock[4]::integer;
            t.is_utc := value ~ '[0-9][ \t\n\v\f\r]*[Zz][ \t\n\v\f\r]*$';
            IF t.zone <> 0 AND t.y IS NOT NULL THEN
                t := inn.with_jd(t);
            END IF;
        ELSIF t.y IS NULL THEN
            IF lower(value COLLATE "C") = 'now' THEN
                t.jd := present;
            ELSIF inn.numeric_value(value) IS NOT NULL THEN
                t.raw := inn.numeric_value(value);
            ELSIF lower(value COLLATE "C") IN ('subsec', 'subsecond') THEN
                t.exact := true;
                t.jd := present;
            ELSE
                RETURN NULL;
            END IF;
        END IF;
    ELSE
        RETURN NULL;
    END IF;
    IF t.raw >= 0 AND t.raw < 5373484.5 THEN
        t.jd := trunc(t.raw * 86400000 + 0.5);
    END IF;
    RETURN t;
END
$$;

-- The moment after one modifier, the `place`th; NULL when it is none that fits. The platform's time zone is UTC, so `localtime`
-- and `utc` move nothing that is in the calendar.
CREATE FUNCTION inn.modified(t inn.moment, word text, place integer) RETURNS inn.moment LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    unit   text := lower(word COLLATE "C");
    parts  text[];
    clock  double precision[];
    rest   text;
    sign   integer;
    amount double precision;
    whole  integer := 0;
    step   bigint;
    z      bigint;
    guess  bigint;
    kept   boolean;
BEGIN
    IF unit = 'auto' THEN
        IF place > 1 THEN
            RETURN NULL;
        ELSIF t.raw IS NULL OR t.jd IS NOT NULL THEN
            t.raw := NULL;
        ELSIF t.raw BETWEEN -210866760000 AND 253402300799 THEN
            t.jd := trunc(t.raw * 1000 + 210866760000000 + 0.5);
            t.raw := NULL;
        END IF;
        RETURN t;
    ELSIF unit = 'julianday' THEN
        IF place > 1 OR t.raw IS NULL OR t.jd IS NULL THEN
            RETURN NULL;
        END IF;
        t.raw := NULL;
        RETURN t;
    ELSIF unit = 'unixepoch' THEN
        IF place > 1 OR t.raw IS NULL OR t.raw < -210866760000 OR t.raw >= 253402300800 THEN
            RETURN NULL;
        END IF;
        t.jd := trunc(t.raw * 1000 + 210866760000000 + 0.5);
        t.raw := NULL;
        RETURN t;
    ELSIF unit IN ('subsec', 'subsecond') THEN
        t.exact := true;
        RETURN t;
    ELSIF unit IN ('start of month', 'start of year', 'start of day') THEN
        IF t.jd IS NULL AND t.y IS NULL AND t.h IS NULL THEN
            RETURN NULL;
        END IF;
        t := inn.with_date(t, false);
        t.jd := NULL; t.raw := NULL;
        t.h := 0; t.mi := 0; t.s := 0; t.zone := 0;
        t.d := CASE WHEN unit = 'start of day' THEN t.d ELSE 1 END;
        t.m := CASE WHEN unit = 'start of year' THEN 1 ELSE t.m END;
        RETURN t;
    ELSIF unit = 'utc' THEN
        IF t.is_utc THEN
            RETURN t;
        END IF;
        t := inn.with_jd(t);
        guess := coalesce(t.jd, 0);
        IF guess NOT BETWEEN 0 AND 464269060799999 THEN
            -- It is looked for by trying, and never met.
            FOR tries IN 1..3 LOOP
                guess := guess - (inn.midnight(0, 1, 1) + guess % 1000 - coalesce(t.jd, 0));
            END LOOP;
        END IF;
        RETURN ROW(guess, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, false, true, false, false)::inn.moment;
    ELSIF unit = 'localtime' THEN
        IF t.is_local THEN
            RETURN t;
        END IF;
        t := inn.with_jd(t);
        z := coalesce(t.jd, 0) % 1000;
        kept := t.exact;
        step := t.beyond;
        t := inn.with_date(t, true);
        t.exact := kept;
        t.beyond := step;
        IF t.y IS NULL THEN
            t.y := CASE WHEN t.jd IS NULL THEN 2000 ELSE 0 END;
            t.m := 1; t.d := 1;
        END IF;
        t.h := t.h % 24; t.s := trunc(t.s) + z / 1000.0;
        t.jd := NULL; t.raw := NULL; t.zone := 0;
        t.is_utc := false; t.is_local := true; t.astray := false;
        RETURN t;
    ELSIF unit IN ('floor', 'ceiling') THEN
        t := inn.with_jd(t);
        IF unit = 'floor' THEN
            t.jd := t.jd - t.beyond * 86400000;
        END IF;
    ELSIF unit LIKE 'weekday %' THEN
        amount := inn.numeric_value(substr(unit, 9));
        IF amount IS NULL OR amount < 0 OR amount >= 7 OR amount <> trunc(amount) THEN
            RETURN NULL;
        END IF;
        t := inn.with_date(t, true);
        t.zone := 0;
        t.jd := NULL;
        t := inn.with_jd(t);
        IF t.jd IS NOT NULL THEN
            z := (t.jd + 129600000) / 86400000 % 7;
            t.jd := t.jd + (amount::bigint - z - CASE WHEN z > amount THEN -7 ELSE 0 END) * 86400000;
        END IF;
    ELSE
        parts := regexp_match(word, '^([+-])([0-9]{4,5})-([0-9]{2})-([0-9]{2})(?:[ \t\n\v\f\r](.*))?$');
        IF parts IS NOT NULL THEN
            IF parts[3]::integer > 11 OR parts[4]::integer > 30 OR parts[2]::integer > 14712 THEN
                RETURN NULL;
            END IF;
            sign := CASE parts[1] WHEN '-' THEN -1 ELSE 1 END;
            t := inn.months_later(t, sign * (parts[2]::integer * 12 + parts[3]::integer));
            t.y := NULL; t.h := NULL;
            t.jd := t.jd + sign * parts[4]::bigint * 86400000;
            rest := parts[5];
        ELSE
            parts := regexp_match(word, '^([+-]?)([0-9]{2}:.*)$');
            IF parts IS NOT NULL THEN
                sign := CASE parts[1] WHEN '-' THEN -1 ELSE 1 END;
                rest := parts[2];
            ELSE
                parts := regexp_match(unit, '^([-+0-9][^ \t\n\v\f\r:]*)[ \t\n\v\f\r]+([a-z]{3,10})$');
                amount := inn.numeric_value(parts[1]);
                unit := CASE WHEN length(parts[2]) >= 3 THEN regexp_replace(parts[2], 's$', '') END;
                IF amount IS NULL OR unit IS NULL OR abs(amount) >= (CASE unit WHEN 'second' THEN 464269992787968 WHEN 'minute' THEN 7737900007424
                    WHEN 'hour' THEN 128969998336 WHEN 'day' THEN 5373485 WHEN 'month' THEN 176546 WHEN 'year' THEN 14713 ELSE -1 END) THEN
                    RETURN NULL;
                END IF;
                t := inn.with_jd(t);
                t.beyond := 0;
                -- Whole months first; what is left of one counts as thirty days, of a year as 365.
                IF unit IN ('month', 'year') THEN
                    whole := trunc(amount) * CASE unit WHEN 'year' THEN 12 ELSE 1 END;
                    t := inn.months_later(t, whole);
                    amount := amount - trunc(amount);
                ELSE
                    t := inn.with_jd(t);
                END IF;
                step := CASE unit WHEN 'second' THEN 1 WHEN 'minute' THEN 60 WHEN 'hour' THEN 3600 WHEN 'day' THEN 86400
                    WHEN 'month' THEN 2592000 ELSE 31536000 END;
                t.jd := t.jd + trunc(amount * 1000 * step + CASE WHEN parts[1] LIKE '-%' AND inn.numeric_value(parts[1]) < 0 THEN -0.5 ELSE 0.5 END)::bigint;
            END IF;
        END IF;
        IF rest IS NOT NULL THEN
            clock := inn.clock_parts(rest);
            IF clock IS NULL THEN
                RETURN NULL;
            END IF;
            z := (clock[1] * 3600000 + clock[2] * 60000 + trunc(clock[3] * 1000 + 0.5) - clock[4] * 60000)::bigint;
            t := inn.with_jd(t);
            t.jd := t.jd + sign * (((z % 86400000) + 86400000) % 86400000);
        END IF;
    END IF;
    t.y := NULL; t.h := NULL; t.zone := 0; t.raw := NULL;
    RETURN t;
END
$$;

-- The time is `number` or `value`; NULL without one. `present` is what `now` means.
CREATE OR REPLACE FUNCTION inn.strftime(format text, number double precision, value text, modifiers text[], present bigint)
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    t       inn.moment := inn.moment_of(number, value, present);
    jd      bigint;
    y       integer;
    m       integer;
    d       integer;
    h       integer;
    mi      integer;
    s       double precision;
    exact   boolean;
    word    text;
    place   integer := 0;
    step    integer;
    z       bigint;
    letter  text;
    written text := '';
    at      integer := 1;
    found   integer;
    january bigint;
    today   bigint;
    other   bigint;
BEGIN
    FOREACH word IN ARRAY modifiers LOOP
        EXIT WHEN t IS NULL;
        place := place + 1;
        t := inn.modified(t, word, place);
    END LOOP;
    IF t IS NULL THEN
        RETURN NULL;
    END IF;
    t := inn.with_jd(t);
    IF t.astray OR t.jd IS NULL OR t.jd NOT BETWEEN 0 AND 464269060799999 THEN
        RETURN NULL;
    END IF;
    -- A day that its month does not have is written as the day it is, unless a modifier came.
    IF cardinality(modifiers) = 0 AND t.d > 28 THEN
        t.y := NULL;
    END IF;
    t := inn.with_date(t, true);
    jd := t.jd; y := t.y; m := t.m; d := t.d; h := t.h; mi := t.mi; s := t.s; exact := t.exact;

    today := inn.time_of_day(h, mi, s);

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
            WHEN 'f' THEN written := written || to_char(inn.exactly(least(s, 59.999)), CASE WHEN s < 0 THEN 'FM0.000' ELSE 'FM00.000' END);
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
            WHEN 'S' THEN written := written || lpad(trunc(s)::integer::text, 2, '0');
            WHEN 'T' THEN written := written || lpad(h::text, 2, '0') || ':' || lpad(mi::text, 2, '0') || ':' || lpad(trunc(s)::integer::text, 2, '0');
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
