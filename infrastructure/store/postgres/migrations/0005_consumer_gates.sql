-- Gates and parked events of consumers, apart from those of the relay. A key begins with the consumer's name.
CREATE TABLE consumer_gates (
	key     text PRIMARY KEY,
	version bigint NOT NULL DEFAULT nextval('tags'),
	data    json NOT NULL,
	wanted  boolean NOT NULL
);
CREATE INDEX consumer_gates_wanted ON consumer_gates (key) WHERE wanted;
CREATE TABLE consumer_parked (
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
	skipped   json,
	PRIMARY KEY (key, id, position)
);
CREATE INDEX consumer_parked_line ON consumer_parked (key, position) WHERE skipped IS NULL;
