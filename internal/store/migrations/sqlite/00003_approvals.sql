-- +goose Up

-- What is decided about a tool: the definition that is approved, the one that a
-- person refused, whether a person switched it off; each with who and when
-- (microseconds since 1970). A part that is not decided is NULL. The definition
-- that a server lists, approved or not, is in the table tool.
CREATE TABLE approval (
	server      TEXT NOT NULL,
	tool        TEXT NOT NULL,
	approved    BLOB, -- fingerprint
	hints       TEXT, -- that the approved definition declares, as JSON
	definition  BLOB, -- the approved one
	approved_by TEXT,
	approved_at INTEGER,
	blocked     BLOB, -- fingerprint
	blocked_by  TEXT,
	blocked_at  INTEGER,
	off_by      TEXT,
	off_at      INTEGER,
	PRIMARY KEY (server, tool)
) WITHOUT ROWID;

-- How a server may be launched or reached, as a person approved it.
CREATE TABLE launch (
	server      TEXT PRIMARY KEY,
	fingerprint BLOB NOT NULL,
	approved_by TEXT NOT NULL,
	approved_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Servers that agents propose.
CREATE TABLE proposal (
	id          INTEGER PRIMARY KEY,
	name        TEXT NOT NULL UNIQUE,
	server      BLOB NOT NULL, -- its entry, as JSON
	proposed_by TEXT NOT NULL,
	proposed_at INTEGER NOT NULL
);

-- Whether there was a database before this one, with approvals that are not in
-- here. One row, written when the database is begun.
CREATE TABLE approval_origin (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	lost INTEGER NOT NULL
);

-- +goose Down
DROP TABLE approval;
DROP TABLE launch;
DROP TABLE proposal;
DROP TABLE approval_origin;
