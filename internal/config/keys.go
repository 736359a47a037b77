package config

import (
	"math"
	"time"

	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// The tables of keys. To add a key: a field, a line here, and one in keys.txt that
// says what it is for.

// keys are the keys of the file, bound to c.
func (c *Config) keys() []key {
	return []key{
		{name: "$schema"},
		{name: "listen", to: &c.Listen, def: "127.0.0.1:8080", check: checkListen, restart: true},
		{name: "data_dir", to: &c.DataDir, def: "~/.mcpproxy", check: checkDir, restart: true},
		{name: "database", to: &c.Database, def: "sqlite", check: checkDatabase, restart: true, secret: true, mask: maskedDatabase},
		{name: "api_key", to: &c.APIKey, check: checkAPIKey, restart: true, secret: true},
		{name: "require_mcp_auth", to: &c.RequireMCPAuth},
		{name: "trusted_hosts", to: &c.TrustedHosts, check: checkHost},
		{name: "tools_limit", to: &c.ToolsLimit, def: 10, min: 1, max: 100},
		{name: "tools_detail", to: &c.ToolsDetail, def: Full, oneOf: []string{"full", "compact"}},
		{name: "discovery_limit", to: &c.DiscoveryLimit, def: 40_000, min: 2000, max: 1 << 20},
		{name: "learn_from_use", to: &c.LearnFromUse},
		{name: "result_limit", to: &c.ResultLimit, def: 60_000, max: 1 << 30},
		{name: "mcp_management", to: &c.MCPManagement, def: ManagePropose, oneOf: []string{"propose", "read", "off"}},
		{name: "call_timeout", to: &c.CallTimeout, def: 2 * time.Minute, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "connect_timeout", to: &c.ConnectTimeout, def: 30 * time.Second, shortest: time.Millisecond, longest: time.Hour},
		{name: "idle_timeout", to: &c.IdleTimeout, longest: 365 * 24 * time.Hour},
		{name: "max_concurrent_calls", to: &c.MaxConcurrent, def: 1024, max: 1_000_000},
		{name: "queue_size", to: &c.QueueSize, def: 4096, max: 1_000_000},
		{name: "queue_timeout", to: &c.QueueTimeout, def: 30 * time.Second, longest: time.Hour},
		{name: "validate_arguments", to: &c.ValidateArguments, def: ValidateReject, oneOf: []string{"reject", "warn", "off"}},
		{name: "activity_retention_days", to: &c.Activity.RetentionDays, def: 90, min: 1, max: 36_500},
		{name: "activity_max_records", to: &c.Activity.MaxRecords, def: 1_000_000, min: 1000, max: math.MaxInt32},
		{name: "activity_max_size_mb", to: &c.Activity.MaxSizeMB, def: 1024, min: 16, max: 1 << 20},
		{name: "activity_max_response_size", to: &c.Activity.MaxResponseSize, def: 65_536, max: 16 << 20, restart: true},
		{name: "activity_durability", to: &c.Activity.Durability, def: SurviveProcess, oneOf: []string{"process", "power"}, restart: true},
		{name: "intent_declaration.strict_server_validation", to: &c.Intent.StrictServerValidation, def: true},
		{name: "intent_declaration.require_intent", to: &c.Intent.RequireIntent},
		{name: "intent_declaration.infer_hints", to: &c.Intent.InferHints, def: policy.InferAdvise, oneOf: InferWords()},
		{name: "intent_declaration.judge_arguments", to: &c.Intent.JudgeArguments, def: policy.JudgeAdvise, oneOf: JudgeWords()},
		{name: "ask.write", to: &c.Ask.Write, def: policy.AskOff, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &c.Ask.Destructive, def: policy.AskOff, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &c.Ask.Tools, checkName: checkToolPattern, check: checkAsk},
		{name: "ask.wait", to: &c.Ask.Wait, def: 45 * time.Second, shortest: shortestWait, longest: longestWait},
		{name: "ask.answer_by_client", to: &c.AnswerByClient, check: checkToken},
		{name: "quarantine_enabled", to: &c.QuarantineEnabled, def: true},
		{name: "log.level", to: &c.LogLevel, def: "info", oneOf: []string{"debug", "info", "warn", "error"}},
		{name: "log.format", to: &c.LogFormat, def: "text", oneOf: []string{"text", "json"}, restart: true},
		{name: "mcpServers", to: &c.Servers},
		{name: "profiles", to: &c.Profiles},
		{name: "telemetry.endpoint", to: &c.TelemetryEndpoint, check: checkEndpoint, restart: true},
	}
}

// keys are the keys of an entry of mcpServers, bound to s.
func (s *Server) keys() []key {
	return []key{
		{name: "name", to: &s.Name, check: tool.CheckServerName},
		{name: "protocol", to: &s.Protocol, def: "auto", oneOf: []string{"auto", "stdio", "http", "sse"}, aliases: []string{"type", "transport"},
			spellings: map[string]string{"local": "stdio", "remote": "auto", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"}},
		{name: "command", to: &s.Command, secrets: true, check: checkFilled},
		{name: "args", to: &s.Args, secrets: true},
		{name: "env", to: &s.Env, secrets: true, aliases: []string{"environment"}, checkName: checkEnvName, secret: true},
		{name: "working_dir", to: &s.WorkingDir, secrets: true, check: checkDir, aliases: []string{"cwd"}},
		{name: "url", to: &s.URL, secrets: true, check: checkURL, aliases: []string{"serverUrl", "httpUrl"}},
		{name: "headers", to: &s.Headers, secrets: true, checkName: checkHeaderName, check: checkHeaderValue, folded: true, secret: true},
		{name: "allow_private", to: &s.AllowPrivate},
		{name: "oauth.client_id", to: &s.OAuth.ClientID, secrets: true, check: checkOneLine},
		{name: "oauth.client_secret", to: &s.OAuth.ClientSecret, secrets: true, check: checkOneLine, secret: true},
		{name: "oauth.client_metadata_url", to: &s.OAuth.ClientMetadataURL, secrets: true, check: checkDocumentURL},
		{name: "oauth.authorization_server", to: &s.OAuth.AuthorizationServer, secrets: true, check: checkURL},
		{name: "oauth.scopes", to: &s.OAuth.Scopes, secrets: true, check: checkScope},
		{name: "oauth.redirect_port", to: &s.OAuth.RedirectPort, max: 65535},
		{name: "enabled", to: &s.Enabled, def: true, inverse: "disabled"},
		{name: "quarantined", to: &s.Quarantined},
		{name: "lazy", to: &s.Lazy},
		{name: "session", to: &s.Session, def: SessionPerClient, oneOf: []string{"per_client", "shared"}},
		{name: "trust", to: &s.Trust, oneOf: TrustWords()},
		{name: "enabled_tools", to: &s.EnabledTools, check: checkPattern, aliases: []string{"enabledTools", "includeTools", "tools"}},
		{name: "disabled_tools", to: &s.DisabledTools, check: checkPattern, aliases: []string{"disabledTools", "excludeTools"}},
		{name: "hint_overrides", to: &s.HintOverrides},
		{name: "call_timeout", to: &s.CallTimeout, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "max_concurrent_calls", to: &s.MaxConcurrent, max: 1_000_000},
		{name: "validate_arguments", to: &s.ValidateArguments, oneOf: []string{"reject", "warn", "off"}},
		{name: "infer_hints", to: &s.InferHints, oneOf: InferWords()},
		{name: "lanes", to: &s.Lanes},
		{name: "ask.write", to: &s.Ask.Write, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &s.Ask.Destructive, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &s.Ask.Tools, checkName: checkPattern, check: checkAsk},
		{name: "ask.wait", to: &s.Ask.Wait, shortest: shortestWait, longest: longestWait},
		{name: "select", to: &s.Selections},
	}
}

// keys are the keys of an entry of profiles, bound to p.
func (p *Profile) keys() []key {
	return []key{
		{name: "servers", to: &p.Servers, check: checkServerPattern},
		{name: "tools", to: &p.Tools},
		{name: "lanes", to: &p.Lanes, check: checkLane},
		{name: "ask.write", to: &p.Ask.Write, oneOf: policy.AskWords()},
		{name: "ask.destructive", to: &p.Ask.Destructive, oneOf: policy.AskWords()},
		{name: "ask.tools", to: &p.Ask.Tools, checkName: checkToolPattern, check: checkAsk},
	}
}

// keys are the keys of an entry of lanes, bound to r.
func (r *LaneRule) keys() []key {
	return []key{
		{name: "by", to: &r.By, oneOf: policy.LaneByWords()},
		{name: "argument", to: &r.Argument, check: checkArgumentPath},
		{name: "read", to: &r.Read, check: checkPattern},
		{name: "write", to: &r.Write, check: checkPattern},
		{name: "destructive", to: &r.Destructive, check: checkPattern},
	}
}

// hintKeys are the keys of an entry of hint_overrides, bound to h.
func hintKeys(h *tool.Hints) []key {
	return []key{
		{name: "title", to: &h.Title},
		{name: "readOnlyHint", to: &h.ReadOnly},
		{name: "destructiveHint", to: &h.Destructive},
		{name: "idempotentHint", to: &h.Idempotent},
		{name: "openWorldHint", to: &h.OpenWorld},
	}
}
