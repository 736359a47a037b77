-- +goose Up

-- One row for a record. key counts the records in the order of the log, from 0,
-- so the newest have the highest, and every page is a range of keys. entry and
-- outcome are the JSON that was chained in the spool, byte for byte; hash and
-- end_hash are their places in the chain. Rows are only ever found by their key:
-- what selects them is in activity_column and activity_text, so a large body
-- costs nothing until it is shown.
CREATE TABLE activity (
	key      INTEGER PRIMARY KEY,
	seq      INTEGER NOT NULL, -- number of the entry that began the record
	end_seq  INTEGER,          -- number of the entry that ended it; NULL while it is pending
	hash     BLOB,
	end_hash BLOB,
	entry    BLOB,             -- NULL when the beginning was lost
	outcome  BLOB              -- NULL for a record that was complete at once
);
CREATE INDEX activity_pending ON activity (seq) WHERE end_seq IS NULL;
CREATE INDEX activity_orphan ON activity (key) WHERE entry IS NULL;

-- How far the spool is in the database. One row.
CREATE TABLE activity_position (
	id        INTEGER PRIMARY KEY CHECK (id = 1),
	chain     TEXT NOT NULL,
	seq       INTEGER NOT NULL,
	hash      BLOB NOT NULL,
	segment   INTEGER NOT NULL,
	offset    INTEGER NOT NULL,
	first_key INTEGER NOT NULL, -- older records are pruned
	next_key  INTEGER NOT NULL
);
INSERT INTO activity_position VALUES (1, '', 0, x'', 0, 0, 0, 0);

-- What 1,024 records are filtered by, column by column: chunk n holds the keys
-- from 1024 n on. A filter reads one small row of each chunk, which gives the
-- records and their exact number at once, for every combination of filters. The
-- newest records are not in a chunk yet; they are filtered in memory.
CREATE TABLE activity_chunk (
	chunk    INTEGER PRIMARY KEY,
	min_time INTEGER NOT NULL, -- microseconds since 1970
	max_time INTEGER NOT NULL
);
CREATE TABLE activity_column (
	id   INTEGER PRIMARY KEY, -- column * 2^40 + chunk
	data BLOB NOT NULL
);

-- The text index: for a segment (some or all records of a chunk) pages of words,
-- each with the records that hold it. first is the first word of the page.
CREATE TABLE activity_segment (
	segment INTEGER PRIMARY KEY, -- the key of its first record
	past    INTEGER NOT NULL     -- the key after its last record
);
CREATE TABLE activity_text (
	segment INTEGER NOT NULL,
	first   BLOB NOT NULL,
	data    BLOB NOT NULL,
	PRIMARY KEY (segment, first)
) WITHOUT ROWID;

-- Finished records by hour, for charts and summaries.
CREATE TABLE activity_hour (
	hour         INTEGER NOT NULL, -- hours since 1970
	type         TEXT NOT NULL,
	server       TEXT NOT NULL,
	tool         TEXT NOT NULL,
	intent       TEXT NOT NULL,
	status       TEXT NOT NULL,
	records      INTEGER NOT NULL,
	duration     INTEGER NOT NULL, -- milliseconds, the sum
	max_duration INTEGER NOT NULL,
	PRIMARY KEY (hour, type, server, tool, intent, status)
) WITHOUT ROWID;

-- Where pruning has cut the chain: seq and hash are those of the last entry that
-- is gone. One row at most. Entries behind it that went with their record leave their hash in
-- activity_gap, so that what remains can still be verified.
CREATE TABLE activity_checkpoint (
	seq     INTEGER PRIMARY KEY,
	hash    BLOB NOT NULL,
	time    INTEGER NOT NULL,
	records INTEGER NOT NULL -- that were pruned in all
);
CREATE TABLE activity_gap (
	seq  INTEGER PRIMARY KEY,
	hash BLOB NOT NULL
);

-- The definitions that each server listed last, in its order.
CREATE TABLE tool (
	server     TEXT NOT NULL,
	position   INTEGER NOT NULL,
	definition BLOB NOT NULL,
	PRIMARY KEY (server, position)
) WITHOUT ROWID;

-- Large results, for read_result.
CREATE TABLE result (
	handle  TEXT PRIMARY KEY,
	actor   TEXT NOT NULL,
	expires INTEGER NOT NULL, -- microseconds since 1970
	body    BLOB NOT NULL
);
CREATE INDEX result_expires ON result (expires);

-- For people with a shell: SELECT * FROM activity_record ORDER BY key DESC.
CREATE VIEW activity_record AS
SELECT key, seq,
	json_extract(head, '$.id') AS id,
	json_extract(head, '$.timestamp') AS timestamp,
	json_extract(head, '$.type') AS type,
	coalesce(json_extract(result, '$.status'), json_extract(head, '$.status')) AS status,
	json_extract(head, '$.server_name') AS server,
	json_extract(head, '$.tool_name') AS tool,
	json_extract(head, '$.metadata.intent.operation_type') AS intent,
	json_extract(head, '$.session_id') AS session,
	json_extract(head, '$.actor') AS actor,
	json_extract(result, '$.duration_ms') AS duration_ms,
	coalesce(json_extract(result, '$.error_message'), json_extract(head, '$.error_message')) AS error,
	head AS entry, result AS outcome
FROM (SELECT key, seq,
		iif(json_valid(CAST(entry AS TEXT)), CAST(entry AS TEXT), '{}') AS head,
		iif(json_valid(CAST(outcome AS TEXT)), CAST(outcome AS TEXT), '{}') AS result
	FROM activity);

-- +goose Down
DROP VIEW activity_record;
DROP TABLE result;
DROP TABLE tool;
DROP TABLE activity_gap;
DROP TABLE activity_checkpoint;
DROP TABLE activity_hour;
DROP TABLE activity_text;
DROP TABLE activity_segment;
DROP TABLE activity_column;
DROP TABLE activity_chunk;
DROP TABLE activity_position;
DROP TABLE activity;
