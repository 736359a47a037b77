-- +goose Up

-- Places of the chain that were signed. Times are in microseconds since 1970.
CREATE TABLE activity_signed (
	chain     TEXT NOT NULL,
	seq       INTEGER NOT NULL,
	hash      BLOB NOT NULL,
	time      INTEGER NOT NULL,
	key       BLOB NOT NULL,
	signature BLOB NOT NULL,
	PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

-- The place up to which the log is pruned is signed, too; those from before are not.
ALTER TABLE activity_checkpoint ADD COLUMN chain TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_checkpoint ADD COLUMN key BLOB;
ALTER TABLE activity_checkpoint ADD COLUMN signature BLOB;

-- The key that is on record.
ALTER TABLE activity_position ADD COLUMN signer TEXT NOT NULL DEFAULT '';

-- Fields of records that are erased here, and not in the spool yet.
CREATE TABLE activity_erasing (
	id     TEXT NOT NULL,
	fields TEXT NOT NULL, -- with commas between them
	at     INTEGER NOT NULL -- seconds since 1970
);

-- entry and outcome are the payloads of the spool: what is chained, and behind a tab the
-- values that can be erased, each with its salt; of versions before, all in one.
DROP VIEW activity_record;
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
	coalesce(json_extract(closing, '$.error_message[2]'), json_extract(opening, '$.error_message[2]'),
		json_extract(result, '$.error_message'), json_extract(head, '$.error_message')) AS error,
	head AS entry, result AS outcome, opening AS entry_values, closing AS outcome_values
FROM (SELECT key, seq,
		CASE WHEN json_valid(begun) THEN begun WHEN json_valid(substr(begun, 1, instr(begun, char(9)) - 1)) THEN substr(begun, 1, instr(begun, char(9)) - 1) ELSE '{}' END AS head,
		CASE WHEN json_valid(ended) THEN ended WHEN json_valid(substr(ended, 1, instr(ended, char(9)) - 1)) THEN substr(ended, 1, instr(ended, char(9)) - 1) ELSE '{}' END AS result,
		iif(json_valid(substr(begun, instr(begun, char(9)) + 1)), substr(begun, instr(begun, char(9)) + 1), '{}') AS opening,
		iif(json_valid(substr(ended, instr(ended, char(9)) + 1)), substr(ended, instr(ended, char(9)) + 1), '{}') AS closing
	FROM (SELECT key, seq, CAST(entry AS TEXT) AS begun, CAST(outcome AS TEXT) AS ended FROM activity));

-- +goose Down
DROP VIEW activity_record;
DROP TABLE activity_erasing;
ALTER TABLE activity_position DROP COLUMN signer;
ALTER TABLE activity_checkpoint DROP COLUMN signature;
ALTER TABLE activity_checkpoint DROP COLUMN key;
ALTER TABLE activity_checkpoint DROP COLUMN chain;
DROP TABLE activity_signed;
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
