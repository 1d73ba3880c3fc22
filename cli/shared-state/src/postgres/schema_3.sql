-- Entries that are read with their versions, and changed unless another server was quicker.

-- Changes the room of an owner. More entries or bytes than the maximum are an error, and the whole statement is undone.
CREATE FUNCTION toolcrib.take_exact_room(
    p_space text, p_kind text, p_owner text, p_entries bigint, p_bytes bigint, p_max_entries bigint, p_max_bytes bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO toolcrib.owner_room AS r (space, kind, owner, entries, bytes)
    VALUES (p_space, p_kind, p_owner, p_entries, p_bytes)
    ON CONFLICT (space, kind, owner) DO UPDATE
    SET entries = r.entries + EXCLUDED.entries, bytes = r.bytes + EXCLUDED.bytes
    WHERE (p_entries <= 0 OR r.entries + p_entries <= p_max_entries)
        AND (p_bytes <= 0 OR r.bytes + p_bytes <= p_max_bytes);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the owner would have more than % entries or % bytes', p_max_entries, p_max_bytes
            USING ERRCODE = 'TC001';
    END IF;
END $$;

-- Returns the version of an entry, and its value unless the version is the known one; nothing without an entry.
CREATE FUNCTION toolcrib.read(
    p_space text, p_kind text, p_owner text, p_key text, p_known bigint, OUT found_version bigint, OUT found_value bytea
) LANGUAGE sql STABLE AS $$
    SELECT e.version, CASE WHEN e.version IS DISTINCT FROM p_known THEN e.value END FROM toolcrib.entry e
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key AND e.ends > clock_timestamp()
$$;

-- Replaces the value of an entry with this version (null: no entry), or with any; a value that is null removes it. Returns false if
-- the entry has another version.
CREATE FUNCTION toolcrib.swap(
    p_space text, p_kind text, p_owner text, p_key text, p_any boolean, p_version bigint, p_new bigint, p_value bytea,
    p_seconds double precision, p_max_entries bigint, p_max_bytes bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    old toolcrib.entry;
BEGIN
    FOR attempt IN 1..5 LOOP
        SELECT * INTO old FROM toolcrib.entry e
        WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key FOR UPDATE;
        IF old.ends <= clock_timestamp() THEN
            PERFORM toolcrib.remove(p_space, p_kind, p_owner, p_key, old.version);
            CONTINUE;
        END IF;
        IF NOT p_any AND old.version IS DISTINCT FROM p_version THEN
            RETURN false;
        END IF;
        IF p_value IS NULL THEN
            IF old.key IS NOT NULL THEN
                PERFORM toolcrib.remove(p_space, p_kind, p_owner, p_key, old.version);
            END IF;
            RETURN true;
        END IF;
        IF old.key IS NOT NULL THEN
            UPDATE toolcrib.entry e
            SET version = p_new, value = p_value, ends = clock_timestamp() + make_interval(secs => p_seconds)
            WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key;
            IF length(p_value) <> length(old.value) THEN
                PERFORM toolcrib.take_exact_room(
                    p_space, p_kind, p_owner, 0, length(p_value) - length(old.value), p_max_entries, p_max_bytes);
            END IF;
            RETURN true;
        END IF;
        INSERT INTO toolcrib.entry (space, kind, owner, key, version, holder, value, ends)
        VALUES (p_space, p_kind, p_owner, p_key, p_new, NULL, p_value,
                clock_timestamp() + make_interval(secs => p_seconds))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM toolcrib.take_exact_room(p_space, p_kind, p_owner, 1, length(p_value), p_max_entries, p_max_bytes);
            RETURN true;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'the entry changes too often' USING ERRCODE = 'serialization_failure';
END $$;

-- Returns the first bytes of the values of an owner's entries.
CREATE FUNCTION toolcrib.beginnings(p_space text, p_kind text, p_owner text, p_most bigint, p_bytes integer)
RETURNS bytea[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(f.value), '{}') FROM (
        SELECT substring(e.value FROM 1 FOR p_bytes) AS value FROM toolcrib.entry e
        WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.ends > clock_timestamp()
        ORDER BY e.key LIMIT p_most
    ) f
$$;
