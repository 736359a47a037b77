-- +goose Up

-- Calls that a person is asked about. key tells one call from every other one; the
-- arguments are masked. Times are in microseconds since 1970, 0 for none.
CREATE TABLE question (
	id             TEXT PRIMARY KEY,
	key            BLOB NOT NULL,
	state          TEXT NOT NULL, -- waiting, approved, denied, used or expired
	principal      TEXT NOT NULL,
	session        TEXT NOT NULL,
	server         TEXT NOT NULL,
	tool           TEXT NOT NULL,
	fingerprint    BLOB NOT NULL,
	revision       TEXT NOT NULL,
	variant        TEXT NOT NULL,
	arguments      BLOB NOT NULL, -- null when it is over
	cut            INTEGER NOT NULL, -- 1: only the beginning of them
	lane           TEXT NOT NULL,
	because        TEXT NOT NULL,
	rule           TEXT NOT NULL,
	reason         TEXT NOT NULL,
	actor          TEXT NOT NULL,
	source         TEXT NOT NULL,
	client         TEXT NOT NULL,
	client_version TEXT NOT NULL,
	record         TEXT NOT NULL,
	asked          INTEGER NOT NULL,
	last_asked     INTEGER NOT NULL,
	ends           INTEGER NOT NULL, -- it waits, or the answer holds, until then
	answered       INTEGER NOT NULL,
	answered_by    TEXT NOT NULL,
	answered_via   TEXT NOT NULL,
	answer         TEXT NOT NULL -- the reason of a denial
) WITHOUT ROWID;
CREATE INDEX question_key ON question (key, state);
CREATE INDEX question_waiting ON question (state, ends);
CREATE INDEX question_asked ON question (asked);

-- Calls that nobody is asked about for a while.
CREATE TABLE lease (
	id         TEXT PRIMARY KEY,
	server     TEXT NOT NULL,
	tools      TEXT NOT NULL, -- a name or pattern, empty for all
	lane       INTEGER NOT NULL, -- 1 read, 2 write, 3 destructive
	client     TEXT NOT NULL,
	actor      TEXT NOT NULL,
	revision   TEXT NOT NULL,
	calls      INTEGER NOT NULL,
	calls_left INTEGER NOT NULL,
	given      INTEGER NOT NULL,
	ends       INTEGER NOT NULL,
	given_by   TEXT NOT NULL,
	given_via  TEXT NOT NULL,
	revoked    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX lease_ends ON lease (ends);

-- +goose Down
DROP TABLE lease;
DROP TABLE question;
