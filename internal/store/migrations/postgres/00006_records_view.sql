-- The records for people who query the database: one row a record, named as in the REST API. A value that
-- a record does not have is NULL.
CREATE VIEW activity_records AS
SELECT a.id,
	i.name AS instance,
	to_timestamp(a.time / 1000000.0) AS "timestamp",
	a.type,
	a.status,
	nullif(a.server, '') AS server_name,
	nullif(a.tool, '') AS tool_name,
	nullif(a.intent, '') AS operation_type,
	nullif(a.sensitivity, '') AS data_sensitivity,
	nullif(a.actor, '') AS actor,
	nullif(a.client, '') AS client_name,
	nullif(a.session, '') AS session_id,
	nullif(a.request, '') AS request_id,
	nullif(a.error_code, '') AS error_code,
	a.duration AS duration_ms,
	a.own AS own_us,
	greatest(a.times, 1) AS repeated
FROM activity a JOIN instance i ON i.id = a.instance;

COMMENT ON VIEW activity_records IS 'The records of the activity log of all instances, one row a record.';
COMMENT ON COLUMN activity_records.operation_type IS 'The intent of a call: read, write or destructive.';
COMMENT ON COLUMN activity_records.own_us IS 'Microseconds of the duration that were MCPProxy''s own.';
COMMENT ON COLUMN activity_records.repeated IS 'How many identical refusals the record stands for.';
