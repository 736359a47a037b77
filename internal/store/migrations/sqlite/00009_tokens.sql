-- +goose Up

-- Agent tokens. Times are in microseconds since 1970; one that never expires has no
-- expires, one that was never used no used. Servers and lanes are JSON arrays; NULL
-- is all.
CREATE TABLE token (
	id      TEXT PRIMARY KEY,
	name    TEXT NOT NULL UNIQUE,
	hash    BLOB NOT NULL UNIQUE,
	profile TEXT NOT NULL,
	servers TEXT,
	lanes   TEXT,
	made_by TEXT NOT NULL,
	made_at INTEGER NOT NULL,
	expires INTEGER,
	used    INTEGER
) WITHOUT ROWID;

-- Which tool gave a result. Of results from before it is not known.
ALTER TABLE result ADD COLUMN tool TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE result DROP COLUMN tool;
DROP TABLE token;
