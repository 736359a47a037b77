-- +goose Up

-- Prompts, resources, templates and instructions are decided about as tools
-- are: the kind is part of the key, '' for tools. The key of a table cannot be
-- changed, so it is made anew.
CREATE TABLE approval_of (
	server      TEXT NOT NULL,
	kind        TEXT NOT NULL,
	tool        TEXT NOT NULL, -- its name or address
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
	PRIMARY KEY (server, kind, tool)
) WITHOUT ROWID;
INSERT INTO approval_of
	SELECT server, '', tool, approved, hints, definition, approved_by, approved_at, blocked, blocked_by, blocked_at, off_by, off_at FROM approval;
DROP TABLE approval;
ALTER TABLE approval_of RENAME TO approval;

-- +goose Down
CREATE TABLE approval_of (
	server      TEXT NOT NULL,
	tool        TEXT NOT NULL,
	approved    BLOB,
	hints       TEXT,
	definition  BLOB,
	approved_by TEXT,
	approved_at INTEGER,
	blocked     BLOB,
	blocked_by  TEXT,
	blocked_at  INTEGER,
	off_by      TEXT,
	off_at      INTEGER,
	PRIMARY KEY (server, tool)
) WITHOUT ROWID;
INSERT INTO approval_of
	SELECT server, tool, approved, hints, definition, approved_by, approved_at, blocked, blocked_by, blocked_at, off_by, off_at FROM approval WHERE kind = '';
DROP TABLE approval;
ALTER TABLE approval_of RENAME TO approval;
