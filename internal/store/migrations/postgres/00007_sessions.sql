-- The key that signs the IDs of client sessions, the same for all instances. One row at most.
CREATE TABLE session_key (
	id  bigint PRIMARY KEY CHECK (id = 1),
	key bytea NOT NULL
);
-- Sessions that have ended and must not be rebuilt, until their ID is too old anyway.
CREATE TABLE ended_session (
	record  text PRIMARY KEY, -- the ID in records, which does not give access
	expires bigint NOT NULL   -- microseconds since 1970
);
