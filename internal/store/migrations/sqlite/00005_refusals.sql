-- +goose Up

-- Refused calls go by a quota of their own, from among others that stay. gone has
-- a bit for each record of the chunk that went so (NULL: none); refused_bytes is
-- the size of its refusals.
ALTER TABLE activity_chunk ADD COLUMN gone BLOB;
ALTER TABLE activity_chunk ADD COLUMN refused_bytes INTEGER NOT NULL DEFAULT 0;

-- A row stands for the entries from first to seq, all gone: what follows is
-- verified with the hash of the last.
ALTER TABLE activity_gap ADD COLUMN first INTEGER;
UPDATE activity_gap SET first = seq;
CREATE INDEX activity_gap_first ON activity_gap (first);

-- +goose Down
DROP INDEX activity_gap_first;
ALTER TABLE activity_gap DROP COLUMN first;
ALTER TABLE activity_chunk DROP COLUMN refused_bytes;
ALTER TABLE activity_chunk DROP COLUMN gone;
