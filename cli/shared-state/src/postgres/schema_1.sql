-- State that servers of toolcrib share. Times are those of the database alone: the clocks of servers may differ.

CREATE TABLE toolcrib.server (
    id text PRIMARY KEY,
    alive_until timestamptz NOT NULL
);

CREATE TABLE toolcrib.entry (
    space text NOT NULL,
    kind text NOT NULL,
    owner text NOT NULL,
    key text NOT NULL,
    -- Another number after each change.
    version bigint NOT NULL,
    -- Server that holds the entry as long as it is alive.
    holder text,
    value bytea NOT NULL,
    ends timestamptz NOT NULL,
    PRIMARY KEY (space, kind, owner, key)
);
CREATE INDEX entry_ends ON toolcrib.entry (ends);

CREATE TABLE toolcrib.owner_room (
    space text NOT NULL,
    kind text NOT NULL,
    owner text NOT NULL,
    entries bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (space, kind, owner)
) WITH (fillfactor = 50);

CREATE TABLE toolcrib.quota (
    space text NOT NULL,
    owner text NOT NULL,
    seconds bigint NOT NULL,
    -- Number of the window, counted from the epoch.
    number bigint NOT NULL,
    used bigint[] NOT NULL,
    PRIMARY KEY (space, owner, seconds)
) WITH (fillfactor = 50);

CREATE TABLE toolcrib.running (
    space text NOT NULL,
    owner text NOT NULL,
    id bigint NOT NULL,
    holder text NOT NULL,
    PRIMARY KEY (space, owner, id)
);

CREATE FUNCTION toolcrib.is_alive(p_server text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p_server IS NOT NULL
        AND EXISTS (SELECT FROM toolcrib.server s WHERE s.id = p_server AND s.alive_until > clock_timestamp())
$$;

-- Changes the room of an owner. More entries than the maximum are an error, and the whole statement is undone.
CREATE FUNCTION toolcrib.take_room(
    p_space text, p_kind text, p_owner text, p_entries bigint, p_bytes bigint, p_max_entries bigint, p_max_bytes bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO toolcrib.owner_room AS r (space, kind, owner, entries, bytes)
    VALUES (p_space, p_kind, p_owner, p_entries, p_bytes)
    ON CONFLICT (space, kind, owner) DO UPDATE
    SET entries = r.entries + EXCLUDED.entries, bytes = r.bytes + EXCLUDED.bytes
    WHERE p_entries <= 0 OR (r.entries < p_max_entries AND r.bytes < p_max_bytes);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the owner has the maximum of % entries or % bytes', p_max_entries, p_max_bytes
            USING ERRCODE = 'TC001';
    END IF;
END $$;

CREATE FUNCTION toolcrib.claim(
    p_space text, p_kind text, p_owner text, p_key text, p_value bytea, p_version bigint, p_holder text,
    p_seconds double precision, p_max_entries bigint, p_max_bytes bigint,
    OUT outcome text, OUT old_value bytea, OUT old_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    old toolcrib.entry;
BEGIN
    FOR attempt IN 1..5 LOOP
        INSERT INTO toolcrib.entry (space, kind, owner, key, version, holder, value, ends)
        VALUES (p_space, p_kind, p_owner, p_key, p_version, p_holder, p_value,
                clock_timestamp() + make_interval(secs => p_seconds))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM toolcrib.take_room(p_space, p_kind, p_owner, 1, length(p_value), p_max_entries, p_max_bytes);
            outcome := 'new';
            RETURN;
        END IF;
        SELECT * INTO old FROM toolcrib.entry e
        WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key FOR UPDATE;
        -- It was removed meanwhile.
        CONTINUE WHEN NOT FOUND;
        IF toolcrib.is_alive(old.holder) THEN
            outcome := 'held';
        ELSIF old.ends <= clock_timestamp() THEN
            UPDATE toolcrib.entry e
            SET version = p_version, holder = p_holder, value = p_value,
                ends = clock_timestamp() + make_interval(secs => p_seconds)
            WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key;
            PERFORM toolcrib.take_room(
                p_space, p_kind, p_owner, 0, length(p_value) - length(old.value), p_max_entries, p_max_bytes);
            outcome := 'new';
        ELSE
            outcome := 'existing';
            old_value := old.value;
            old_version := old.version;
        END IF;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'the entry changes too often' USING ERRCODE = 'serialization_failure';
END $$;

-- Changes an entry with this version; a value that is null stays. Returns false if the entry has another version.
CREATE FUNCTION toolcrib.change(
    p_space text, p_kind text, p_owner text, p_key text, p_version bigint, p_new bigint, p_value bytea, p_holder text,
    p_seconds double precision
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    old toolcrib.entry;
BEGIN
    SELECT * INTO old FROM toolcrib.entry e
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key FOR UPDATE;
    -- An answer that was lost is asked for again.
    IF FOUND AND old.version = p_new THEN
        RETURN true;
    END IF;
    IF NOT FOUND OR old.version <> p_version THEN
        RETURN false;
    END IF;
    UPDATE toolcrib.entry e
    SET version = p_new, holder = p_holder, value = coalesce(p_value, e.value),
        ends = clock_timestamp() + make_interval(secs => p_seconds)
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key;
    IF p_value IS NOT NULL AND length(p_value) <> length(old.value) THEN
        PERFORM toolcrib.take_room(p_space, p_kind, p_owner, 0, length(p_value) - length(old.value), 0, 0);
    END IF;
    RETURN true;
END $$;

-- Removes an entry with this version.
CREATE FUNCTION toolcrib.remove(p_space text, p_kind text, p_owner text, p_key text, p_version bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    size bigint;
BEGIN
    DELETE FROM toolcrib.entry e
    WHERE e.space = p_space AND e.kind = p_kind AND e.owner = p_owner AND e.key = p_key AND e.version = p_version
    RETURNING length(e.value) INTO size;
    IF size IS NULL THEN
        RETURN false;
    END IF;
    PERFORM toolcrib.take_room(p_space, p_kind, p_owner, -1, -size, 0, 0);
    RETURN true;
END $$;

-- Adds amounts to those of the present window if there is room for at least one more of each. `refused` is 0 if they were added, the
-- number of the amount without room, or -1 for too many calls at once; `wait` is the time until the next window in seconds. A call
-- with a number (`p_slot`) counts as running until it is released or its server ends.
CREATE FUNCTION toolcrib.admit(
    p_space text, p_owner text, p_seconds bigint, p_adds bigint[], p_limits bigint[], p_slot bigint, p_max_running bigint,
    p_holder text, p_released bigint[],
    OUT refused integer, OUT wait bigint
) LANGUAGE plpgsql AS $$
DECLARE
    held toolcrib.quota;
    now_seconds bigint;
    present bigint;
BEGIN
    LOOP
        INSERT INTO toolcrib.quota (space, owner, seconds, number, used)
        VALUES (p_space, p_owner, p_seconds, 0, array_fill(0::bigint, ARRAY[cardinality(p_adds)]))
        ON CONFLICT DO NOTHING;
        SELECT * INTO held FROM toolcrib.quota q
        WHERE q.space = p_space AND q.owner = p_owner AND q.seconds = p_seconds FOR UPDATE;
        EXIT WHEN FOUND;
    END LOOP;
    now_seconds := floor(extract(epoch FROM clock_timestamp()));
    present := now_seconds / p_seconds;
    wait := p_seconds - now_seconds % p_seconds;
    refused := 0;
    IF held.number < present THEN
        held.number := present;
        held.used := array_fill(0::bigint, ARRAY[cardinality(p_adds)]);
    END IF;
    IF cardinality(p_released) > 0 THEN
        DELETE FROM toolcrib.running r WHERE r.space = p_space AND r.owner = p_owner AND r.id = ANY (p_released);
    END IF;
    IF p_max_running IS NOT NULL AND p_max_running <= (
        SELECT count(*) FROM toolcrib.running r
        WHERE r.space = p_space AND r.owner = p_owner AND toolcrib.is_alive(r.holder)
    ) THEN
        refused := -1;
        RETURN;
    END IF;
    FOR part IN 1..cardinality(p_adds) LOOP
        IF p_limits[part] IS NOT NULL AND held.used[part] + greatest(p_adds[part], 1) > p_limits[part] THEN
            refused := part;
            RETURN;
        END IF;
        held.used[part] := least(held.used[part] + p_adds[part], 1::bigint << 61);
    END LOOP;
    UPDATE toolcrib.quota q SET number = held.number, used = held.used
    WHERE q.space = p_space AND q.owner = p_owner AND q.seconds = p_seconds;
    IF p_slot IS NOT NULL THEN
        INSERT INTO toolcrib.running (space, owner, id, holder) VALUES (p_space, p_owner, p_slot, p_holder);
    END IF;
END $$;

CREATE FUNCTION toolcrib.release(p_space text, p_owner text, p_released bigint[]) RETURNS boolean LANGUAGE sql AS $$
    DELETE FROM toolcrib.running r WHERE r.space = p_space AND r.owner = p_owner AND r.id = ANY (p_released);
    SELECT true;
$$;

-- Extends the life of a server, and so of all that it holds; none without seconds.
CREATE FUNCTION toolcrib.live(p_server text, p_seconds double precision) RETURNS boolean LANGUAGE sql AS $$
    INSERT INTO toolcrib.server (id, alive_until)
    VALUES (p_server, clock_timestamp() + make_interval(secs => p_seconds))
    ON CONFLICT (id) DO UPDATE SET alive_until = EXCLUDED.alive_until;
    SELECT true;
$$;

-- Removes some of the rows that have expired, by one server at a time. Returns true if there may be more.
CREATE FUNCTION toolcrib.sweep(p_most bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    removed bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('toolcrib.sweep')) THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM toolcrib.entry e USING (
            SELECT o.space, o.kind, o.owner, o.key FROM toolcrib.entry o
            WHERE o.ends <= clock_timestamp() AND NOT toolcrib.is_alive(o.holder)
            LIMIT p_most FOR UPDATE SKIP LOCKED
        ) old
        WHERE e.space = old.space AND e.kind = old.kind AND e.owner = old.owner AND e.key = old.key
        RETURNING e.space, e.kind, e.owner, length(e.value) AS size
    ), sums AS (
        SELECT space, kind, owner, count(*) AS entries, sum(size) AS bytes FROM gone GROUP BY space, kind, owner
    ), rooms AS (
        UPDATE toolcrib.owner_room r SET entries = r.entries - s.entries, bytes = r.bytes - s.bytes
        FROM sums s WHERE r.space = s.space AND r.kind = s.kind AND r.owner = s.owner
    )
    SELECT count(*) INTO removed FROM gone;
    DELETE FROM toolcrib.owner_room r WHERE r.entries <= 0;
    DELETE FROM toolcrib.running r WHERE NOT toolcrib.is_alive(r.holder);
    DELETE FROM toolcrib.quota q
    WHERE (q.number + 2) * q.seconds < extract(epoch FROM clock_timestamp());
    DELETE FROM toolcrib.server s WHERE s.alive_until < clock_timestamp() - interval '1 day';
    RETURN removed >= p_most;
END $$;
