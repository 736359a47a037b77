-- What an approval has replaced: the definition that was approved until then, and the
-- refusal; with who and when, as of the rest. It comes back when the approval is taken back.
ALTER TABLE approval
	ADD COLUMN before bytea,
	ADD COLUMN before_hints text,
	ADD COLUMN before_definition bytea,
	ADD COLUMN before_by text,
	ADD COLUMN before_at bigint,
	ADD COLUMN before_blocked bytea,
	ADD COLUMN before_blocked_by text,
	ADD COLUMN before_blocked_at bigint;
