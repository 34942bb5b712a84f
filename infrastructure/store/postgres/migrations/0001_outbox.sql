-- Aggregates. A deleted aggregate expires. If its id may be used again (recurs), the row stays
-- without data as its tombstone.
CREATE TABLE aggregates (
	id         uuid PRIMARY KEY,
	type       text NOT NULL,
	version    bigint NOT NULL,
	sequence   bigint NOT NULL,
	deleted    boolean NOT NULL,
	recurs     boolean NOT NULL,
	data       text NOT NULL,
	expires_at timestamptz
);
CREATE INDEX aggregates_listed ON aggregates (type, id) WHERE NOT deleted;
CREATE INDEX aggregates_expiring ON aggregates (expires_at) WHERE expires_at IS NOT NULL;

-- Events. xid is the transaction that stored the event: see doc.go for the order of the feed.
CREATE TABLE events (
	xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
	hash       integer NOT NULL,
	key        text NOT NULL,
	id         text NOT NULL,
	document   text NOT NULL,
	stored_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	expires_at timestamptz,
	PRIMARY KEY (hash, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX events_feed ON events (xid, hash);

-- Answered requests, by idempotency key.
CREATE TABLE requests (
	aggregate_id uuid NOT NULL,
	id           text NOT NULL,
	hash         text NOT NULL,
	command_id   uuid NOT NULL,
	created_at   timestamptz NOT NULL,
	version      bigint NOT NULL,
	expires_at   timestamptz,
	PRIMARY KEY (aggregate_id, id)
);
CREATE INDEX requests_expiring ON requests (expires_at);

CREATE TABLE audits (
	aggregate_id uuid NOT NULL,
	version      bigint NOT NULL,
	at           timestamptz NOT NULL,
	principal    text NOT NULL,
	events       json NOT NULL,
	expires_at   timestamptz,
	PRIMARY KEY (aggregate_id, version)
);
CREATE INDEX audits_expiring ON audits (expires_at);

-- The relay's leases. etag comes from a sequence, so values are never reused.
CREATE SEQUENCE tags;
CREATE TABLE leases (
	id   text COLLATE "C" PRIMARY KEY,
	etag bigint NOT NULL DEFAULT nextval('tags'),
	body text NOT NULL
) WITH (fillfactor = 50);

-- Gates of parked keys, parked events, and records of skipped events.
CREATE TABLE gates (
	key               text PRIMARY KEY,
	version           bigint NOT NULL DEFAULT nextval('tags'),
	closing           json NOT NULL,
	wanted            boolean NOT NULL,
	intent            json,
	progress_sequence bigint NOT NULL,
	progress_lsn      bigint NOT NULL,
	events            bigint NOT NULL,
	last              bigint NOT NULL,
	sequence          bigint NOT NULL,
	attempts          integer NOT NULL,
	error             text NOT NULL,
	tried_at          timestamptz
);
CREATE INDEX gates_wanted ON gates (key) WHERE wanted;
CREATE TABLE parked (
	key       text NOT NULL,
	id        text NOT NULL,
	position  bigint NOT NULL,
	action    text NOT NULL,
	document  bytea NOT NULL,
	lsn       bigint NOT NULL,
	sequence  bigint NOT NULL,
	reason    text NOT NULL,
	error     text NOT NULL,
	attempts  integer NOT NULL,
	parked_at timestamptz NOT NULL,
	skipped   json, -- the intent of the operator who skipped it
	PRIMARY KEY (key, id, position)
);
CREATE INDEX parked_line ON parked (key, position) WHERE skipped IS NULL;
