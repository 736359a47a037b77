package config

import (
	"math"
	"time"

	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// The tables of keys. To add a key: one field and one line here.

// keys are the keys of the file, bound to c.
func (c *Config) keys() []key {
	return []key{
		{name: "$schema", doc: "Where an editor finds the JSON Schema of this file. MCPProxy ignores it."},
		{name: "listen", to: &c.Listen, def: "127.0.0.1:8080", check: checkListen, restart: true,
			doc: "Address and port of the HTTP surfaces. An address that is not loopback needs `require_mcp_auth`."},
		{name: "data_dir", to: &c.DataDir, def: "~/.mcpproxy", check: checkDir, restart: true,
			doc: "Directory of the log, the key and what else MCPProxy keeps: an absolute path, or one that begins with `~/`."},
		{name: "api_key", to: &c.APIKey, check: checkAPIKey, restart: true, secret: true,
			doc: "Key of the REST interface. Without it the key is made at the first start and kept in the file `api_key` of the data directory."},
		{name: "require_mcp_auth", to: &c.RequireMCPAuth,
			doc: "MCP clients, too, must present the key. Obligatory when `listen` is not loopback."},
		{name: "trusted_hosts", to: &c.TrustedHosts, check: checkHost,
			doc: "Further host names that requests may have in `Host` and `Origin`; those of the loopback address are always accepted."},
		{name: "tools_limit", to: &c.ToolsLimit, def: 10, min: 1, max: 100,
			doc: "How many tools `retrieve_tools` gives when the agent sets no `limit`."},
		{name: "tools_detail", to: &c.ToolsDetail, def: Full, oneOf: []string{"full", "compact"},
			doc: "What `retrieve_tools` says about a tool: its schema (`full`) or a one-line signature (`compact`)."},
		{name: "learn_from_use", to: &c.LearnFromUse,
			doc: "Tools that were called after a search come a little earlier when its words are used again. What is learned comes from the activity log and stays on this machine."},
		{name: "result_limit", to: &c.ResultLimit, def: 60_000, max: 1 << 30,
			doc: "Results larger than this many bytes are cut; `read_result` gives the rest. 0 = no limit."},
		{name: "mcp_management", to: &c.MCPManagement, def: ManagePropose, oneOf: []string{"propose", "read", "off"},
			doc: "What agents may do with `upstream_servers`: look and propose, look, or nothing (the tool is not offered)."},
		{name: "call_timeout", to: &c.CallTimeout, def: 2 * time.Minute, shortest: time.Millisecond, longest: 24 * time.Hour,
			doc: "How long a call may take."},
		{name: "connect_timeout", to: &c.ConnectTimeout, def: 30 * time.Second, shortest: time.Millisecond, longest: time.Hour,
			doc: "How long a server may be silent at its start until its tools are listed. For a process it counts from when it could answer: one that still works, such as `npx` that installs, has up to 15 minutes."},
		{name: "idle_timeout", to: &c.IdleTimeout, longest: 365 * 24 * time.Hour,
			doc: "After how long without use a server on stdin and stdout is stopped, until it is used again; its tools stay listed and callable. `\"0s\"` = never."},
		{name: "max_concurrent_calls", to: &c.MaxConcurrent, def: 1024, max: 1_000_000,
			doc: "How many calls run at a time; the others queue. 0 = no limit."},
		{name: "queue_size", to: &c.QueueSize, def: 4096, max: 1_000_000,
			doc: "How many calls may queue; further ones are refused with `OVERLOADED`."},
		{name: "queue_timeout", to: &c.QueueTimeout, def: 30 * time.Second, longest: time.Hour,
			doc: "How long a call may queue before it is refused with `OVERLOADED`."},
		{name: "validate_arguments", to: &c.ValidateArguments, def: ValidateReject, oneOf: []string{"reject", "warn", "off"},
			doc: "What happens to arguments that violate the tool's own schema."},
		{name: "activity_retention_days", to: &c.Activity.RetentionDays, def: 90, min: 1, max: 36_500,
			doc: "For how many days a record of the log is kept."},
		{name: "activity_max_records", to: &c.Activity.MaxRecords, def: 1_000_000, min: 1000, max: math.MaxInt32,
			doc: "How many records are kept. Of refused calls a tenth as many are, beside these."},
		{name: "activity_max_size_mb", to: &c.Activity.MaxSizeMB, def: 1024, min: 16, max: 1 << 20,
			doc: "How large the log may grow. Refused calls have a tenth of it, beside that."},
		{name: "activity_max_response_size", to: &c.Activity.MaxResponseSize, def: 65_536, max: 16 << 20, restart: true,
			doc: "How many bytes of a response a record keeps."},
		{name: "activity_durability", to: &c.Activity.Durability, def: SurviveProcess, oneOf: []string{"process", "power"}, restart: true,
			doc: "What a record survives from the moment the tool is asked: the death of the process, or the loss of power."},
		{name: "intent_declaration.strict_server_validation", to: &c.Intent.StrictServerValidation, def: true,
			doc: "Refuse a call whose variant contradicts the hints of the server; `false` lets it through with a warning."},
		{name: "intent_declaration.require_intent", to: &c.Intent.RequireIntent,
			doc: "Callers must send `intent.operation_type` with every call."},
		{name: "intent_declaration.infer_hints", to: &c.Intent.InferHints, def: policy.InferAdvise, oneOf: []string{"off", "advise", "enforce"},
			doc: "What is made of tools that say neither `readOnlyHint` nor `destructiveHint`: nothing; `advise` tells what they seem to do, and warns of a call in a more harmless lane; `enforce` takes it as if the server had said so."},
		{name: "quarantine_enabled", to: &c.QuarantineEnabled, def: true,
			doc: "`false`: a server without `trust` of its own has `auto` instead of `scan`. What agents propose waits for a person all the same."},
		{name: "log.level", to: &c.LogLevel, def: "info", oneOf: []string{"debug", "info", "warn", "error"},
			doc: "The least important messages that the daemon logs."},
		{name: "log.format", to: &c.LogFormat, def: "text", oneOf: []string{"text", "json"}, restart: true,
			doc: "The form of the daemon's log."},
		{name: "mcpServers", to: &c.Servers,
			doc: "The servers: an object (name → server), or a list of objects with `name`."},
		{name: "database", planned: true},
		{name: "telemetry", planned: true},
	}
}

// keys are the keys of an entry of mcpServers, bound to s.
func (s *Server) keys() []key {
	return []key{
		{name: "name", to: &s.Name, check: tool.CheckServerName,
			doc: "The server's name, in the list form: 1 to 64 of letters, digits, `.`, `-`, `_`, without `__`."},
		{name: "protocol", to: &s.Protocol, def: "auto", oneOf: []string{"auto", "stdio", "http", "sse"}, aliases: []string{"type", "transport"},
			spellings: map[string]string{"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"},
			doc:       "How the server is reached; `auto` follows from `command` or `url`. `http` is streamable HTTP, `sse` the transport of MCP 2024-11-05, which `auto` finds by itself."},
		{name: "command", to: &s.Command, check: checkFilled,
			doc: "The program to start, for a server on stdin and stdout. Either this or `url`."},
		{name: "args", to: &s.Args, doc: "Its arguments."},
		{name: "env", to: &s.Env, checkName: checkEnvName, secret: true,
			doc: "Environment variables for it, besides the few it always gets (`PATH`, `HOME`, …)."},
		{name: "working_dir", to: &s.WorkingDir, check: checkDir, aliases: []string{"cwd"},
			doc: "The directory it starts in: an absolute path, or one that begins with `~/`."},
		{name: "url", to: &s.URL, check: checkURL, aliases: []string{"serverUrl", "httpUrl"},
			doc: "Address of a server over HTTP. Either this or `command`."},
		{name: "headers", to: &s.Headers, checkName: checkHeaderName, check: checkHeaderValue, folded: true, secret: true,
			doc: "Headers for each request to it."},
		{name: "allow_private", to: &s.AllowPrivate,
			doc: "The name in `url` may lead into private networks, and where one logs in may be there. An address, or `localhost`, in `url` itself needs it not."},
		{name: "oauth.client_id", to: &s.OAuth.ClientID, check: checkOneLine,
			doc: "Id of a client that you have registered at the authorization server. Without it MCPProxy registers by itself, where it may."},
		{name: "oauth.client_secret", to: &s.OAuth.ClientSecret, check: checkOneLine, secret: true,
			doc: "Its secret, if it has one; best as `${env:NAME}`."},
		{name: "oauth.client_metadata_url", to: &s.OAuth.ClientMetadataURL, check: checkDocumentURL,
			doc: "Address of a client metadata document, for authorization servers that take one."},
		{name: "oauth.authorization_server", to: &s.OAuth.AuthorizationServer, check: checkURL,
			doc: "The authorization server (its issuer) to use, of those that the server names. Without it: the first one."},
		{name: "oauth.scopes", to: &s.OAuth.Scopes, check: checkScope,
			doc: "What to ask for at the login. Without it: what the server asks for."},
		{name: "oauth.redirect_port", to: &s.OAuth.RedirectPort, max: 65535,
			doc: "The port at which the login comes back to this machine; for clients that were registered with it. 0 = a free one."},
		{name: "enabled", to: &s.Enabled, def: true, inverse: "disabled",
			doc: "`false`: the server is not started, and its tools cannot be called."},
		{name: "quarantined", to: &s.Quarantined,
			doc: "`true`: the server waits for review, and its tools cannot be called."},
		{name: "lazy", to: &s.Lazy,
			doc: "`true`: the server is not started before its first call; until then its last known tools are listed."},
		{name: "session", to: &s.Session, def: SessionPerClient, oneOf: []string{"per_client", "shared"},
			doc: "Whose session with the server a client of `/mcp/servers/…` and `/mcp/all` has: `per_client`, its own, which over stdin and stdout is a process of its own; `shared`, the one that MCPProxy has, so that the server runs once, but cannot ask clients anything. Servers of 2026-07-28 have no sessions."},
		{name: "trust", to: &s.Trust, oneOf: TrustWords(),
			doc: "Which new tools are accepted without a person: none, those that the scanner finds clean, or all. Of changes, only `auto` accepts any, and none that loosens a hint. Left out: `scan`, or `auto` where `quarantine_enabled` is `false`."},
		{name: "enabled_tools", to: &s.EnabledTools, check: checkPattern,
			doc: "Only these tools may be called: names, in which `*` stands for any characters and `?` for one. Not together with `disabled_tools`."},
		{name: "disabled_tools", to: &s.DisabledTools, check: checkPattern,
			doc: "These tools may not be called: names or patterns, as in `enabled_tools`."},
		{name: "hint_overrides", to: &s.HintOverrides,
			doc: "Corrections of what the server says about its tools: name or pattern → hints. Where several match, the last one wins, hint by hint."},
		{name: "call_timeout", to: &s.CallTimeout, shortest: time.Millisecond, longest: 24 * time.Hour,
			doc: "How long a call to this server may take, instead of the general `call_timeout`."},
		{name: "max_concurrent_calls", to: &s.MaxConcurrent, max: 1_000_000,
			doc: "How many calls to this server run at a time. 0 = no limit of its own."},
		{name: "validate_arguments", to: &s.ValidateArguments, oneOf: []string{"reject", "warn", "off"},
			doc: "For this server, instead of the general `validate_arguments`."},
	}
}

// hintKeys are the keys of an entry of hint_overrides, bound to h.
func hintKeys(h *tool.Hints) []key {
	return []key{
		{name: "title", to: &h.Title, doc: "Title for people."},
		{name: "readOnlyHint", to: &h.ReadOnly, doc: "The tool changes nothing."},
		{name: "destructiveHint", to: &h.Destructive, doc: "The tool may delete, or do what cannot be undone."},
		{name: "idempotentHint", to: &h.Idempotent, doc: "Calling it again with the same arguments changes nothing more."},
		{name: "openWorldHint", to: &h.OpenWorld, doc: "The tool reaches out to the world outside."},
	}
}
