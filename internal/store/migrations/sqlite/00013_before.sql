-- +goose Up
-- What an approval has replaced: the definition that was approved until then, and the
-- refusal; with who and when, as of the rest. It comes back when the approval is taken back.
ALTER TABLE approval ADD COLUMN before BLOB;
ALTER TABLE approval ADD COLUMN before_hints TEXT;
ALTER TABLE approval ADD COLUMN before_definition BLOB;
ALTER TABLE approval ADD COLUMN before_by TEXT;
ALTER TABLE approval ADD COLUMN before_at INTEGER;
ALTER TABLE approval ADD COLUMN before_blocked BLOB;
ALTER TABLE approval ADD COLUMN before_blocked_by TEXT;
ALTER TABLE approval ADD COLUMN before_blocked_at INTEGER;

-- +goose Down
ALTER TABLE approval DROP COLUMN before_blocked_at;
ALTER TABLE approval DROP COLUMN before_blocked_by;
ALTER TABLE approval DROP COLUMN before_blocked;
ALTER TABLE approval DROP COLUMN before_at;
ALTER TABLE approval DROP COLUMN before_by;
ALTER TABLE approval DROP COLUMN before_definition;
ALTER TABLE approval DROP COLUMN before_hints;
ALTER TABLE approval DROP COLUMN before;
