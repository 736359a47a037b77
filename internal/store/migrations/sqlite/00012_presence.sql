-- +goose Up
-- What proves that a person decides, in order: see package presence.
CREATE TABLE presence_anchor (
	place  INTEGER PRIMARY KEY,
	anchor BLOB NOT NULL
);
-- What was signed, each once.
CREATE TABLE presence_statement (
	nonce     TEXT PRIMARY KEY,
	at        INTEGER NOT NULL,
	statement BLOB NOT NULL,
	signature BLOB NOT NULL,
	claims    TEXT NOT NULL -- a line each
) WITHOUT ROWID;

-- +goose Down
DROP TABLE presence_statement;
DROP TABLE presence_anchor;
