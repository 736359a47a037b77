-- +goose Up
-- The key that signs the IDs of client sessions. One row at most.
CREATE TABLE session_key (
	id  INTEGER PRIMARY KEY CHECK (id = 1),
	key BLOB NOT NULL
);
-- Sessions that have ended and must not be rebuilt, until their ID is too old anyway.
CREATE TABLE ended_session (
	record  TEXT PRIMARY KEY, -- the ID in records, which does not give access
	expires INTEGER NOT NULL  -- microseconds since 1970
) WITHOUT ROWID;

-- +goose Down
DROP TABLE ended_session;
DROP TABLE session_key;
