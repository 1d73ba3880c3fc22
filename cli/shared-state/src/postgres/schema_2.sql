-- Entries that are read, listed and removed by their names, and owners whose oldest entries give way to new ones.

CREATE FUNCTION toolcrib.get(p_space text, p_kind text, p_owner text, p_key text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT e.value FROM toolcrib.entry e
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key AND e.ends > clock_timestamp()
$$;

-- Returns the values of an owner's entries, those that end first before the others.
CREATE FUNCTION toolcrib.list(p_space text, p_kind text, p_owner text, p_most bigint) RETURNS bytea[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(f.value ORDER BY f.ends, f.key), '{}') FROM (
        SELECT e.value, e.ends, e.key FROM toolcrib.entry e
        WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.ends > clock_timestamp()
        ORDER BY e.ends, e.key LIMIT p_most
    ) f
$$;

-- Removes an entry by its name. Returns false if there is none.
CREATE FUNCTION toolcrib.forget(p_space text, p_kind text, p_owner text, p_key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    size bigint;
BEGIN
    DELETE FROM toolcrib.entry e
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key
    RETURNING length(e.value) INTO size;
    IF size IS NULL THEN
        RETURN false;
    END IF;
    PERFORM toolcrib.take_room(p_space, p_kind, p_owner, -1, -size, 0, 0);
    RETURN true;
END $$;

-- Creates an entry with a new name. The owner's entries that end first give way if there are too many, or too many bytes.
CREATE FUNCTION toolcrib.put(
    p_space text, p_kind text, p_owner text, p_key text, p_value bytea, p_version bigint, p_seconds double precision,
    p_max_entries bigint, p_max_bytes bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    room toolcrib.owner_room;
    gone bigint;
    freed bigint;
BEGIN
    -- One new entry of an owner after another.
    LOOP
        INSERT INTO toolcrib.owner_room (space, kind, owner, entries, bytes) VALUES (p_space, p_kind, p_owner, 0, 0)
        ON CONFLICT DO NOTHING;
        SELECT * INTO room FROM toolcrib.owner_room r
        WHERE r.space = p_space AND r.kind = p_kind AND r.owner = p_owner FOR UPDATE;
        -- It was removed meanwhile.
        EXIT WHEN FOUND;
    END LOOP;
    IF room.entries + 1 > p_max_entries OR room.bytes + length(p_value) > p_max_bytes THEN
        WITH ordered AS (
            SELECT e.key, row_number() OVER newest AS entries, sum(length(e.value)) OVER newest AS bytes
            FROM toolcrib.entry e WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner
            WINDOW newest AS (ORDER BY e.ends DESC, e.key)
        ), oldest AS (
            -- Other statements lock an entry before its owner.
            SELECT e.key FROM toolcrib.entry e JOIN ordered o ON o.key = e.key
            WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner
                AND (o.entries >= p_max_entries OR o.bytes + length(p_value) > p_max_bytes)
            FOR UPDATE OF e SKIP LOCKED
        ), removed AS (
            DELETE FROM toolcrib.entry e USING oldest o
            WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = o.key
            RETURNING length(e.value) AS size
        )
        SELECT count(*), coalesce(sum(size), 0) INTO gone, freed FROM removed;
        PERFORM toolcrib.take_room(p_space, p_kind, p_owner, -gone, -freed, 0, 0);
    END IF;
    INSERT INTO toolcrib.entry (space, kind, owner, key, version, holder, value, ends)
    VALUES (p_space, p_kind, p_owner, p_key, p_version, NULL, p_value,
            clock_timestamp() + make_interval(secs => p_seconds));
    UPDATE toolcrib.owner_room r SET entries = r.entries + 1, bytes = r.bytes + length(p_value)
    WHERE r.space = p_space AND r.kind = p_kind AND r.owner = p_owner;
    RETURN true;
END $$;
