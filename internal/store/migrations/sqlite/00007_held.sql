-- Since when definitions wait for a person. Nothing is decided by it.

-- +goose Up
CREATE TABLE held (
	server      TEXT NOT NULL,
	kind        TEXT NOT NULL,
	name        TEXT NOT NULL,
	fingerprint BLOB NOT NULL,
	since       INTEGER NOT NULL, -- microseconds
	PRIMARY KEY (server, kind, name)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE held;
