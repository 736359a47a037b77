-- Calls that a person is asked about. key tells one call from every other one; the
-- arguments are masked. Times are in microseconds since 1970, 0 for none.
CREATE TABLE question (
	id             text PRIMARY KEY,
	key            bytea NOT NULL,
	state          text NOT NULL, -- waiting, approved, denied, used or expired
	principal      text NOT NULL,
	session        text NOT NULL,
	server         text NOT NULL,
	tool           text NOT NULL,
	fingerprint    bytea NOT NULL,
	revision       text NOT NULL,
	variant        text NOT NULL,
	arguments      bytea NOT NULL, -- null when it is over
	cut            bigint NOT NULL, -- 1: only the beginning of them
	lane           text NOT NULL,
	because        text NOT NULL,
	rule           text NOT NULL,
	reason         text NOT NULL,
	actor          text NOT NULL,
	source         text NOT NULL,
	client         text NOT NULL,
	client_version text NOT NULL,
	record         text NOT NULL,
	asked          bigint NOT NULL,
	last_asked     bigint NOT NULL,
	ends           bigint NOT NULL, -- it waits, or the answer holds, until then
	answered       bigint NOT NULL,
	answered_by    text NOT NULL,
	answered_via   text NOT NULL,
	answer         text NOT NULL -- the reason of a denial
);
CREATE INDEX question_key ON question (key, state);
CREATE INDEX question_waiting ON question (state, ends);
CREATE INDEX question_asked ON question (asked);

-- Calls that nobody is asked about for a while.
CREATE TABLE lease (
	id         text PRIMARY KEY,
	server     text NOT NULL,
	tools      text NOT NULL, -- a name or pattern, empty for all
	lane       bigint NOT NULL, -- 1 read, 2 write, 3 destructive
	client     text NOT NULL,
	actor      text NOT NULL,
	revision   text NOT NULL,
	calls      bigint NOT NULL,
	calls_left bigint NOT NULL,
	given      bigint NOT NULL,
	ends       bigint NOT NULL,
	given_by   text NOT NULL,
	given_via  text NOT NULL,
	revoked    bigint NOT NULL
);
CREATE INDEX lease_ends ON lease (ends);

