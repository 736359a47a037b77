package config

import (
	"math"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// The tables of keys. To add a key: a field, a line here, and one in keys.txt that
// says what it is for.

// keys are the keys of the file, bound to c.
func (c *Config) keys() []key {
	return []key{
		{name: "$schema", widens: never},
		{name: "listen", to: &c.Listen, widens: exposed, def: "127.0.0.1:8080", check: checkListen, restart: true},
		{name: "data_dir", to: &c.DataDir, widens: always, def: "~/.mcpproxy", check: checkDir, restart: true},
		{name: "database", to: &c.Database, widens: always, def: "sqlite", check: checkDatabase, restart: true, secret: true, mask: maskedDatabase},
		{name: "api_key", to: &c.APIKey, widens: always, check: checkAPIKey, restart: true, secret: true},
		{name: "require_mcp_auth", to: &c.RequireMCPAuth, widens: off},
		{name: "trusted_hosts", to: &c.TrustedHosts, widens: adds, check: checkHost},
		{name: "tools_limit", to: &c.ToolsLimit, widens: never, def: 10, min: 1, max: 100},
		{name: "tools_detail", to: &c.ToolsDetail, widens: never, def: Auto, oneOf: []string{"auto", "full", "compact"}},
		{name: "discovery_limit", to: &c.DiscoveryLimit, widens: never, def: 40_000, min: 2000, max: 1 << 20},
		{name: "learn_from_use", to: &c.LearnFromUse, widens: never},
		{name: "result_limit", to: &c.ResultLimit, widens: never, def: 60_000, max: 1 << 30},
		{name: "mcp_management", to: &c.MCPManagement, widens: towards(string(ManageOff), string(ManageRead), string(ManagePropose)), def: ManagePropose, oneOf: []string{"propose", "read", "off"}},
		{name: "call_timeout", to: &c.CallTimeout, widens: never, def: 2 * time.Minute, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "connect_timeout", to: &c.ConnectTimeout, widens: never, def: 30 * time.Second, shortest: time.Millisecond, longest: time.Hour},
		{name: "idle_timeout", to: &c.IdleTimeout, widens: never, longest: 365 * 24 * time.Hour},
		{name: "max_concurrent_calls", to: &c.MaxConcurrent, widens: never, def: 1024, max: 1_000_000},
		{name: "queue_size", to: &c.QueueSize, widens: never, def: 4096, max: 1_000_000},
		{name: "queue_timeout", to: &c.QueueTimeout, widens: never, def: 30 * time.Second, longest: time.Hour},
		{name: "validate_arguments", to: &c.ValidateArguments, widens: validated, def: ValidateReject, oneOf: []string{"reject", "warn", "off"}},
		{name: "activity_retention_days", to: &c.Activity.RetentionDays, widens: less, def: 90, min: 1, max: 36_500},
		{name: "activity_max_records", to: &c.Activity.MaxRecords, widens: less, def: 1_000_000, min: 1000, max: math.MaxInt32},
		{name: "activity_max_size_mb", to: &c.Activity.MaxSizeMB, widens: less, def: 1024, min: 16, max: 1 << 20},
		{name: "activity_max_response_size", to: &c.Activity.MaxResponseSize, widens: less, def: 65_536, max: 16 << 20, restart: true},
		{name: "activity_durability", to: &c.Activity.Durability, widens: towards(string(SurvivePower), string(SurviveProcess)), def: SurviveProcess, oneOf: []string{"process", "power"}, restart: true},
		{name: "intent_declaration.strict_server_validation", to: &c.Intent.StrictServerValidation, widens: off, def: true},
		{name: "intent_declaration.require_intent", to: &c.Intent.RequireIntent, widens: off},
		{name: "intent_declaration.infer_hints", to: &c.Intent.InferHints, widens: inferred, def: policy.InferAdvise, oneOf: InferWords()},
		{name: "intent_declaration.judge_arguments", to: &c.Intent.JudgeArguments, widens: judged, def: policy.JudgeAdvise, oneOf: judgeWords()},
		{name: "ask.write", to: &c.Ask.Write, widens: asked, def: policy.AskOff, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &c.Ask.Destructive, widens: asked, def: policy.AskOff, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &c.Ask.Tools, widens: askedTools, checkName: checkToolPattern, check: checkAsk},
		{name: "ask.wait", to: &c.Ask.Wait, widens: never, def: 45 * time.Second, shortest: shortestWait, longest: longestWait},
		{name: "ask.answer_by_client", to: &c.AnswerByClient, widens: adds, check: checkToken},
		{name: "presence", to: &c.Presence, widens: proved, def: PresenceNone, oneOf: []string{"none", "passphrase", "passkey"}},
		{name: "quarantine_enabled", to: &c.QuarantineEnabled, widens: off, def: true},
		{name: "log.level", to: &c.LogLevel, widens: never, def: "info", oneOf: []string{"debug", "info", "warn", "error"}},
		{name: "log.format", to: &c.LogFormat, widens: never, def: "text", oneOf: []string{"text", "json"}, restart: true},
		{name: "mcpServers", to: &c.Servers, widens: inside},
		{name: "profiles", to: &c.Profiles, widens: inside},
		{name: "telemetry.endpoint", to: &c.TelemetryEndpoint, widens: sent, check: checkEndpoint, restart: true},
	}
}

// keys are the keys of an entry of mcpServers, bound to s.
func (s *Server) keys() []key {
	return []key{
		{name: "name", to: &s.Name, widens: never, check: tool.CheckServerName},
		{name: "protocol", to: &s.Protocol, widens: always, def: "auto", oneOf: []string{"auto", "stdio", "http", "sse"}, aliases: []string{"type", "transport"},
			spellings: map[string]string{"local": "stdio", "remote": "auto", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"}},
		{name: "command", to: &s.Command, widens: always, secrets: true, check: checkFilled},
		{name: "args", to: &s.Args, widens: always, secrets: true},
		{name: "env", to: &s.Env, widens: always, secrets: true, aliases: []string{"environment"}, checkName: checkEnvName, secret: true},
		{name: "working_dir", to: &s.WorkingDir, widens: always, secrets: true, check: checkDir, aliases: []string{"cwd"}},
		{name: "url", to: &s.URL, widens: always, secrets: true, check: checkURL, aliases: []string{"serverUrl", "httpUrl"}},
		{name: "headers", to: &s.Headers, widens: always, secrets: true, checkName: checkHeaderName, check: checkHeaderValue, folded: true, secret: true},
		{name: "allow_private", to: &s.AllowPrivate, widens: on},
		{name: "oauth.client_id", to: &s.OAuth.ClientID, widens: always, secrets: true, check: checkOneLine},
		{name: "oauth.client_secret", to: &s.OAuth.ClientSecret, widens: always, secrets: true, check: checkOneLine, secret: true},
		{name: "oauth.client_metadata_url", to: &s.OAuth.ClientMetadataURL, widens: always, secrets: true, check: checkDocumentURL},
		{name: "oauth.authorization_server", to: &s.OAuth.AuthorizationServer, widens: always, secrets: true, check: checkURL},
		{name: "oauth.scopes", to: &s.OAuth.Scopes, widens: always, secrets: true, check: checkScope},
		{name: "oauth.redirect_port", to: &s.OAuth.RedirectPort, widens: always, max: 65535},
		{name: "enabled", to: &s.Enabled, widens: on, def: true, inverse: "disabled"},
		{name: "quarantined", to: &s.Quarantined, widens: off},
		{name: "lazy", to: &s.Lazy, widens: never},
		{name: "session", to: &s.Session, widens: towards(string(SessionPerClient), string(SessionShared)), def: SessionPerClient, oneOf: []string{"per_client", "shared"}},
		{name: "trust", to: &s.Trust, widens: towards(TrustWords()...), oneOf: TrustWords()},
		{name: "enabled_tools", to: &s.EnabledTools, widens: admits, check: checkPattern, aliases: []string{"enabledTools", "includeTools", "tools"}},
		{name: "disabled_tools", to: &s.DisabledTools, widens: drops, check: checkPattern, aliases: []string{"disabledTools", "excludeTools"}},
		{name: "hint_overrides", to: &s.HintOverrides, widens: inside},
		{name: "call_timeout", to: &s.CallTimeout, widens: never, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "max_concurrent_calls", to: &s.MaxConcurrent, widens: never, max: 1_000_000},
		{name: "validate_arguments", to: &s.ValidateArguments, widens: validated, oneOf: []string{"reject", "warn", "off"}},
		{name: "infer_hints", to: &s.InferHints, widens: inferred, oneOf: InferWords()},
		{name: "lanes", to: &s.Lanes, widens: inside},
		{name: "ask.write", to: &s.Ask.Write, widens: asked, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &s.Ask.Destructive, widens: asked, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &s.Ask.Tools, widens: askedTools, checkName: checkPattern, check: checkAsk},
		{name: "ask.wait", to: &s.Ask.Wait, widens: never, shortest: shortestWait, longest: longestWait},
		{name: "select", to: &s.Selections, widens: never},
	}
}

// keys are the keys of an entry of profiles, bound to p.
func (p *Profile) keys() []key {
	return []key{
		{name: "servers", to: &p.Servers, widens: admits, check: checkServerPattern},
		{name: "tools", to: &p.Tools, widens: inside},
		{name: "lanes", to: &p.Lanes, widens: admits, check: checkLane},
		{name: "ask.write", to: &p.Ask.Write, widens: asked, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &p.Ask.Destructive, widens: asked, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &p.Ask.Tools, widens: askedTools, checkName: checkToolPattern, check: checkAsk},
	}
}

// keys are the keys of an entry of lanes, bound to r.
func (r *LaneRule) keys() []key {
	return []key{
		{name: "by", to: &r.By, widens: always, oneOf: policy.LaneByWords()},
		{name: "argument", to: &r.Argument, widens: always, check: checkArgumentPath},
		{name: "read", to: &r.Read, widens: adds, check: checkPattern},
		{name: "write", to: &r.Write, widens: drops, check: checkPattern},
		{name: "destructive", to: &r.Destructive, widens: drops, check: checkPattern},
	}
}

// hintKeys are the keys of an entry of hint_overrides, bound to h.
func hintKeys(h *tool.Hints) []key {
	return []key{
		{name: "title", to: &h.Title, widens: always},
		{name: "readOnlyHint", to: &h.ReadOnly, widens: harmless(tool.True)},
		{name: "destructiveHint", to: &h.Destructive, widens: harmless(tool.False)},
		{name: "idempotentHint", to: &h.Idempotent, widens: harmless(tool.True)},
		{name: "openWorldHint", to: &h.OpenWorld, widens: harmless(tool.False)},
	}
}
