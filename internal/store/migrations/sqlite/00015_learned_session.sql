-- +goose Up
-- Reasons why clients need a session of their own with a server, as its questions have shown.
CREATE TABLE learned_session (
	server TEXT NOT NULL,
	launch BLOB NOT NULL,    -- fingerprint: another launch is another server
	need   TEXT NOT NULL,    -- sampling, elicitation or roots
	since  INTEGER NOT NULL, -- microseconds since 1970
	PRIMARY KEY (server, need)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE learned_session;
