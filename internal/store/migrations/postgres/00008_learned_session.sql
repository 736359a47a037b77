-- Reasons why clients need a session of their own with a server, as its questions have shown.
CREATE TABLE learned_session (
	server text NOT NULL,
	launch bytea NOT NULL,  -- fingerprint: another launch is another server
	need   text NOT NULL,   -- sampling, elicitation or roots
	since  bigint NOT NULL, -- microseconds since 1970
	PRIMARY KEY (server, need)
);
