-- Whether calls are paused, on all instances. It always has exactly one row.
CREATE TABLE pause (
	id         bigint PRIMARY KEY CHECK (id = 1),
	paused     boolean NOT NULL,
	reason     text NOT NULL,
	decided_by text NOT NULL,
	via        text NOT NULL,
	at         bigint NOT NULL -- microseconds since 1970
);
INSERT INTO pause VALUES (1, false, '', '', '', 0);
