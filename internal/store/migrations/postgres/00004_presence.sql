-- What proves that a person decides, in order: see package presence.
CREATE TABLE presence_anchor (
	place  bigint PRIMARY KEY,
	anchor bytea NOT NULL
);
-- What was signed, each once.
CREATE TABLE presence_statement (
	nonce     text PRIMARY KEY,
	at        bigint NOT NULL,
	statement bytea NOT NULL,
	signature bytea NOT NULL,
	claims    text NOT NULL -- a line each
);
