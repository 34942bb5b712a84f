-- Events in transactions of any program. Everything here is new, so programs of version 3 continue.
SET LOCAL lock_timeout = '5s';

-- Heads of keys: sequence and xid (the position in the feed) of the last event of each key. The lock
-- on its row gives the transactions of a key their order. A head never expires, because sequences
-- are never reused.
CREATE TABLE keys (
	key      text COLLATE "C" PRIMARY KEY,
	sequence bigint NOT NULL,
	xid      xid8 NOT NULL
) WITH (fillfactor = 50);

-- The functions run with the rights of their owner, so no schema of the caller may be searched. A
-- pg_temp that is not named would be searched first.
SELECT set_config('search_path', current_setting('search_path') || ', pg_temp', true);

-- recordstore.Hash: FNV-1a of 64 bits in two halves, then one step of a finalizer.
CREATE FUNCTION hash(key text) RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS $hash$
DECLARE
	raw  CONSTANT bytea := convert_to(key, 'UTF8');
	high bigint := x'cbf29ce4'::bigint;
	low  bigint := x'84222325'::bigint;
BEGIN
	FOR i IN 0 .. length(raw) - 1 LOOP
		low := low # get_byte(raw, i);
		high := (high * 435 + low * 435 / 4294967296 + low * 256) & 4294967295; -- times 2^40 + 435
		low := low * 435 & 4294967295;
	END LOOP;
	low := low # (high >> 1);
	RETURN div((high * 4294967296.0 + low) * 18397679294719823053.0 % 18446744073709551616.0, 17179869184.0);
END
$hash$;

-- emit stores an event in the transaction of the caller and returns its id and sequence. data is an
-- object; createdAt and traceparent may be among its members. A lifetime of NULL is for ever. The
-- key stays locked until the transaction ends.
CREATE FUNCTION emit(key text, action text, data jsonb DEFAULT '{}', lifetime interval DEFAULT '10 days', OUT id text, OUT sequence bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $emit$
#variable_conflict use_column
DECLARE
	own      CONSTANT xid8 := pg_current_xact_id();
	taken    CONSTANT text[] := '{action,id,sequence,ordinal,aggregateVersion,schemaVersion}';
	position xid8;
	document text;
	wrong    text := CASE
		WHEN key IS NULL OR length(key) NOT BETWEEN 1 AND 128 THEN 'the key must have 1 to 128 characters'
		WHEN action IS NULL OR length(action) NOT BETWEEN 1 AND 128 THEN 'the action must have 1 to 128 characters'
		WHEN jsonb_typeof(data) IS DISTINCT FROM 'object' THEN 'data must be a JSON object'
		WHEN data ?| taken THEN format('data must have none of the members %s, which emit adds', array_to_string(taken, ', '))
		WHEN jsonb_typeof(data->'createdAt') <> 'string' OR jsonb_typeof(data->'traceparent') <> 'string' THEN 'createdAt and traceparent must be strings'
		WHEN lifetime <= interval '0' THEN 'the lifetime must be positive, or NULL for ever'
		END;
BEGIN
	IF wrong IS NULL THEN
		-- A transaction that waited for the key may have the lower id: see doc.go.
		INSERT INTO keys AS k VALUES (emit.key, 1, own)
		ON CONFLICT (key) DO UPDATE SET sequence = k.sequence + 1, xid = greatest(k.xid, own) RETURNING k.sequence, k.xid INTO sequence, position;
		-- No such id has ended on this server: the head was copied from another one.
		IF position > own AND position >= pg_snapshot_xmax(pg_current_snapshot()) THEN
			UPDATE keys AS k SET xid = own WHERE k.key = emit.key;
			position := own;
		END IF;
		id := gen_random_uuid();
		document := jsonb_build_object('id', id, 'partitionKey', emit.key, 'type', 'domainEvent', 'data',
			jsonb_build_object('createdAt', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) || data ||
			jsonb_build_object('action', action, 'id', id, 'sequence', sequence, 'schemaVersion', 1));
		IF octet_length(document) > 1048576 THEN
			wrong := format('the event has %s bytes and may have 1048576; store the data elsewhere and emit its address', octet_length(document));
		ELSIF sequence = 1 AND key ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
			PERFORM FROM aggregates AS a WHERE a.id = emit.key::uuid;
			wrong := CASE WHEN FOUND THEN 'the key is the id of an aggregate, which counts its own events' END;
		END IF;
	END IF;
	IF wrong IS NOT NULL THEN
		RAISE EXCEPTION 'emit %: %', coalesce(left(action, 128), 'NULL'), wrong USING ERRCODE = 'invalid_parameter_value';
	END IF;
	INSERT INTO events (xid, hash, key, id, document, expires_at) VALUES (position, hash(key), key, id, document, now() + lifetime);
	-- Otherwise a reader could see the commit before it is on disk, and a server that crashed then
	-- reuses its id.
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END
$emit$;
REVOKE ALL ON FUNCTION hash(text), emit(text, text, jsonb, interval) FROM PUBLIC;
