-- The processes that share this database. Each has a log of its own: a chain, whose
-- entries are in order, and records that count from 0. Times are in microseconds since
-- 1970 where nothing else is said.
CREATE TABLE instance (
	id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name        text COLLATE "C" NOT NULL UNIQUE,
	host        text NOT NULL DEFAULT '',
	seen        timestamptz NOT NULL DEFAULT now(),
	-- How far its spool is in the database.
	chain       text NOT NULL DEFAULT '',
	seq         bigint NOT NULL DEFAULT 0,
	hash        bytea NOT NULL DEFAULT '',
	segment     bigint NOT NULL DEFAULT 0,
	file_offset bigint NOT NULL DEFAULT 0,
	signer      text NOT NULL DEFAULT '',
	first_key   bigint NOT NULL DEFAULT 0, -- older records are pruned
	next_key    bigint NOT NULL DEFAULT 0,
	sealed      bigint NOT NULL DEFAULT 0, -- chunks below have columns
	place       text COLLATE "C" NOT NULL DEFAULT '' -- of its newest record
);

-- One row for a record. entry and outcome are what was chained in the spool, byte for
-- byte; hash and end_hash are their places in the chain. The columns behind them are
-- what the record says, for filters and for people. place is the id, or that of the
-- record before where it is greater, so that it never falls from one key to the next.
CREATE TABLE activity (
	instance    integer NOT NULL,
	key         bigint NOT NULL,
	id          text COLLATE "C" NOT NULL,
	place       text COLLATE "C" NOT NULL,
	seq         bigint NOT NULL, -- number of the entry that began the record
	end_seq     bigint,          -- number of the entry that ended it; NULL while it is pending
	hash        bytea,
	end_hash    bytea,
	entry       bytea,           -- NULL when the beginning was lost
	outcome     bytea,           -- NULL for a record that was complete at once
	time        bigint NOT NULL,
	type        text NOT NULL,
	status      text NOT NULL,
	server      text NOT NULL,
	tool        text NOT NULL,
	session     text NOT NULL,
	request     text NOT NULL,
	intent      text NOT NULL,
	sensitivity text NOT NULL,
	actor       text NOT NULL,
	client      text NOT NULL,
	error_code  text NOT NULL,
	duration    bigint NOT NULL, -- milliseconds
	own         bigint NOT NULL, -- microseconds of it that were MCPProxy's
	times       bigint NOT NULL, -- how often a refusal has happened; 0 is once
	PRIMARY KEY (instance, key)
);
-- Compressing costs more time than it saves room.
ALTER TABLE activity ALTER COLUMN entry SET STORAGE EXTERNAL, ALTER COLUMN outcome SET STORAGE EXTERNAL;
CREATE INDEX activity_id ON activity (id);
CREATE INDEX activity_place ON activity (instance, place, key);
CREATE INDEX activity_pending ON activity (instance, seq) WHERE end_seq IS NULL;

-- What 1,024 records are filtered and counted by, column by column: chunk n of an
-- instance holds its keys from 1024 n on. A filter reads one small row of each chunk,
-- whatever it selects. The newest records are in no chunk yet.
CREATE TABLE activity_chunk (
	instance      integer NOT NULL,
	chunk         bigint NOT NULL,
	min_time      bigint NOT NULL,
	max_time      bigint NOT NULL,
	bytes         bigint NOT NULL, -- of its records
	refused       bigint NOT NULL, -- how many of them are refusals
	refused_bytes bigint NOT NULL,
	gone          bytea,           -- a bit for each that went from among the others; NULL: none
	indexed       boolean NOT NULL DEFAULT false, -- in the text index
	PRIMARY KEY (instance, chunk)
);
CREATE INDEX activity_chunk_unindexed ON activity_chunk (instance, chunk) WHERE NOT indexed;
CREATE TABLE activity_column (
	field    smallint NOT NULL,
	instance integer NOT NULL,
	chunk    bigint NOT NULL,
	data     bytea NOT NULL,
	PRIMARY KEY (field, instance, chunk)
);
ALTER TABLE activity_column ALTER COLUMN data SET STORAGE EXTERNAL;

-- The text index: for a segment (some or all records of a chunk) pages of words, each
-- with the records that hold it. first is the first word of the page.
CREATE TABLE activity_segment (
	instance integer NOT NULL,
	segment  bigint NOT NULL, -- the key of its first record
	PRIMARY KEY (instance, segment)
);
CREATE TABLE activity_text (
	instance integer NOT NULL,
	segment  bigint NOT NULL,
	first    bytea NOT NULL,
	data     bytea NOT NULL,
	PRIMARY KEY (instance, segment, first)
);
ALTER TABLE activity_text ALTER COLUMN data SET STORAGE EXTERNAL;

-- Finished records by hour.
CREATE TABLE activity_hour (
	instance     integer NOT NULL,
	hour         bigint NOT NULL, -- hours since 1970
	type         text NOT NULL,
	server       text NOT NULL,
	tool         text NOT NULL,
	intent       text NOT NULL,
	status       text NOT NULL,
	records      bigint NOT NULL,
	duration     bigint NOT NULL, -- milliseconds, the sum
	max_duration bigint NOT NULL,
	last         bigint NOT NULL,
	PRIMARY KEY (instance, hour, type, server, tool, intent, status)
);
CREATE TABLE activity_took (
	instance integer NOT NULL,
	hour     bigint NOT NULL,
	server   text NOT NULL,
	bucket   bigint NOT NULL,
	records  bigint NOT NULL,
	PRIMARY KEY (instance, hour, server, bucket)
);

-- Where pruning has cut a chain: seq and hash are those of the last entry that is gone.
-- Entries behind it that went with their record leave the hash of the last of each run.
CREATE TABLE activity_checkpoint (
	instance  integer PRIMARY KEY,
	seq       bigint NOT NULL,
	hash      bytea NOT NULL,
	time      bigint NOT NULL,
	records   bigint NOT NULL, -- that were pruned in all
	chain     text NOT NULL,
	key       bytea,
	signature bytea
);
CREATE TABLE activity_gap (
	instance integer NOT NULL,
	seq      bigint NOT NULL,
	hash     bytea NOT NULL,
	first    bigint NOT NULL,
	PRIMARY KEY (instance, seq)
);
CREATE INDEX activity_gap_first ON activity_gap (instance, first);

-- Places of chains that were signed.
CREATE TABLE activity_signed (
	instance  integer NOT NULL,
	chain     text NOT NULL,
	seq       bigint NOT NULL,
	hash      bytea NOT NULL,
	time      bigint NOT NULL,
	key       bytea NOT NULL,
	signature bytea NOT NULL,
	PRIMARY KEY (instance, chain, seq)
);

-- Fields of records that are erased here, and not in the spool of their instance yet.
CREATE TABLE activity_erasing (
	instance integer NOT NULL,
	id       text NOT NULL,
	fields   text NOT NULL, -- with commas between them
	at       bigint NOT NULL -- seconds since 1970
);

-- What is decided about tools and offers, as in the database of one machine. The
-- version counts the changes: who decides by an older one has to look again.
CREATE TABLE decisions (
	id      integer PRIMARY KEY CHECK (id = 1),
	version bigint NOT NULL,
	lost    bigint NOT NULL -- 1: there were others, which are not in here
);
INSERT INTO decisions VALUES (1, 1, 0);
CREATE TABLE approval (
	server      text NOT NULL,
	kind        text NOT NULL,
	tool        text NOT NULL, -- its name or address
	approved    bytea,         -- fingerprint
	hints       text,          -- that the approved definition declares, as JSON
	definition  bytea,         -- the approved one
	approved_by text,
	approved_at bigint,
	blocked     bytea,         -- fingerprint
	blocked_by  text,
	blocked_at  bigint,
	off_by      text,
	off_at      bigint,
	PRIMARY KEY (server, kind, tool)
);
CREATE TABLE launch (
	server      text COLLATE "C" PRIMARY KEY,
	fingerprint bytea NOT NULL,
	approved_by text NOT NULL,
	approved_at bigint NOT NULL
);
CREATE TABLE proposal (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name        text NOT NULL UNIQUE,
	server      bytea NOT NULL, -- its entry, as JSON
	proposed_by text NOT NULL,
	proposed_at bigint NOT NULL
);
CREATE TABLE held (
	server      text NOT NULL,
	kind        text NOT NULL,
	name        text NOT NULL,
	fingerprint bytea NOT NULL,
	since       bigint NOT NULL,
	PRIMARY KEY (server, kind, name)
);

-- The definitions that each server listed last, in its order.
CREATE TABLE tool (
	server     text COLLATE "C" NOT NULL,
	position   bigint NOT NULL,
	definition bytea NOT NULL,
	PRIMARY KEY (server, position)
);

-- Agent tokens. One that never expires has no expires, one that was never used no used.
-- Servers and lanes are JSON arrays; NULL is all.
CREATE TABLE token (
	id      text PRIMARY KEY,
	name    text COLLATE "C" NOT NULL UNIQUE,
	hash    bytea NOT NULL UNIQUE,
	profile text NOT NULL,
	servers text,
	lanes   text,
	made_by text NOT NULL,
	made_at bigint NOT NULL,
	expires bigint,
	used    bigint
);

-- Large results, for read_result, encrypted with a key that is made of the handle;
-- handle is the SHA-256 of the handle in hex.
CREATE TABLE result (
	number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	handle  text NOT NULL UNIQUE,
	actor   text NOT NULL,
	server  text NOT NULL,
	tool    text NOT NULL,
	expires bigint NOT NULL,
	body    bytea NOT NULL
);
ALTER TABLE result ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX result_expires ON result (expires);
