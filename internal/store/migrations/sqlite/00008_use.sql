-- +goose Up

-- When the last of an hour's records was, in microseconds since 1970. Of hours from
-- before it is not known: 0.
ALTER TABLE activity_hour ADD COLUMN last INTEGER NOT NULL DEFAULT 0;

-- How long calls took, by hour and server. What a bucket stands for is the code's.
CREATE TABLE activity_took (
	hour    INTEGER NOT NULL,
	server  TEXT NOT NULL,
	bucket  INTEGER NOT NULL,
	records INTEGER NOT NULL,
	PRIMARY KEY (hour, server, bucket)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE activity_took;
ALTER TABLE activity_hour DROP COLUMN last;
