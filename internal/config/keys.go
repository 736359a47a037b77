package config

import (
	"math"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/config/auth/users"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/sandbox"
)

// Tables of keys. To add a key, add a field, a line here, and a line in keys.txt with its documentation.

// keys returns the top-level keys, bound to c.
func (c *Config) keys() []configKey {
	return []configKey{
		{name: "$schema", grants: never},
		{name: "listen", field: &c.Listen, grants: exposed, defaultValue: "127.0.0.1:8080", check: checkListen, restart: true},
		{name: "data_dir", field: &c.DataDir, grants: always, defaultValue: "~/.mcpproxy", check: checkAbsoluteDir, restart: true},
		{name: "database", field: &c.Database, grants: always, defaultValue: "sqlite", check: checkDatabase, restart: true, secret: true, mask: maskDatabaseURL},
		{name: "api_key", field: &c.APIKey, grants: always, check: checkAPIKey, restart: true, secret: true},
		{name: "require_mcp_auth", field: &c.RequireMCPAuth, grants: off},
		{name: "trusted_hosts", field: &c.TrustedHosts, grants: adds, check: checkHost},
		{name: "tls.certificate_file", field: &c.TLS.CertificateFile, grants: always, check: checkTLSFile, restart: true},
		{name: "tls.key_file", field: &c.TLS.KeyFile, grants: always, check: checkTLSFile, restart: true},
		{name: "trusted_proxies", field: &c.TrustedProxies, grants: adds, check: checkProxy},
		{name: "public_url", field: &c.PublicURL, grants: sent, check: checkPublicURL},
		{name: "tools_limit", field: &c.ToolsLimit, grants: never, defaultValue: 10, min: 1, max: 100},
		{name: "tools_detail", field: &c.ToolsDetail, grants: never, defaultValue: Auto, oneOf: []string{"auto", "full", "compact"}},
		{name: "discovery_limit", field: &c.DiscoveryLimit, grants: never, defaultValue: 40_000, min: 2000, max: 1 << 20},
		{name: "learn_from_use", field: &c.LearnFromUse, grants: never},
		{name: "result_limit", field: &c.ResultLimit, grants: never, defaultValue: 60_000, max: 1 << 30},
		{name: "mcp_management", field: &c.MCPManagement, grants: newStrictToLooseRule(string(ManageOff), string(ManageRead), string(ManagePropose)), defaultValue: ManagePropose, oneOf: []string{"propose", "read", "off"}},
		{name: "call_timeout", field: &c.CallTimeout, grants: never, defaultValue: 2 * time.Minute, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "connect_timeout", field: &c.ConnectTimeout, grants: never, defaultValue: 30 * time.Second, shortest: time.Millisecond, longest: time.Hour},
		{name: "idle_timeout", field: &c.IdleTimeout, grants: never, longest: 365 * 24 * time.Hour},
		{name: "max_concurrent_calls", field: &c.MaxConcurrent, grants: never, defaultValue: 1024, max: 1_000_000},
		{name: "queue_size", field: &c.QueueSize, grants: never, defaultValue: 4096, max: 1_000_000},
		{name: "queue_timeout", field: &c.QueueTimeout, grants: never, defaultValue: 30 * time.Second, longest: time.Hour},
		{name: "validate_arguments", field: &c.ValidateArguments, grants: validated, defaultValue: ValidateReject, oneOf: []string{"reject", "warn", "off"}},
		{name: "activity_retention_days", field: &c.Activity.RetentionDays, grants: less, defaultValue: 90, min: 1, max: 36_500},
		{name: "activity_max_records", field: &c.Activity.MaxRecords, grants: less, defaultValue: 1_000_000, min: 1000, max: math.MaxInt32},
		{name: "activity_max_size_mb", field: &c.Activity.MaxSizeMB, grants: less, defaultValue: 1024, min: 16, max: 1 << 20},
		{name: "activity_max_response_size", field: &c.Activity.MaxResponseSize, grants: less, defaultValue: 65_536, max: 16 << 20, restart: true},
		{name: "activity_durability", field: &c.Activity.Durability, grants: newStrictToLooseRule(string(SurvivePower), string(SurviveProcess)), defaultValue: SurviveProcess, oneOf: []string{"process", "power"}, restart: true},
		{name: "intent_declaration.strict_server_validation", field: &c.Intent.StrictServerValidation, grants: off, defaultValue: true},
		{name: "intent_declaration.require_intent", field: &c.Intent.RequireIntent, grants: off},
		{name: "intent_declaration.infer_hints", field: &c.Intent.InferHints, grants: inferred, defaultValue: policy.InferAdvise, oneOf: InferValues()},
		{name: "intent_declaration.judge_arguments", field: &c.Intent.JudgeArguments, grants: judged, defaultValue: policy.ArgumentsAdvise, oneOf: judgeValues()},
		{name: "ask.write", field: &c.Ask.Write, grants: asked, defaultValue: policy.AskOff, oneOf: policy.AskModeNames()},
		{name: "ask.destructive", field: &c.Ask.Destructive, grants: asked, defaultValue: policy.AskOff, oneOf: policy.AskModeNames()},
		{name: "ask.tools", field: &c.Ask.Tools, grants: askedTools, checkName: checkToolPattern, check: checkAskMode},
		{name: "ask.wait", field: &c.Ask.Wait, grants: never, defaultValue: 45 * time.Second, shortest: shortestWait, longest: longestWait},
		{name: "ask.answer_by_client", field: &c.AnswerByClient, grants: adds, check: checkTokenName},
		{name: "presence", field: &c.Presence, grants: proved, defaultValue: PresenceNone, oneOf: []string{"none", "passphrase", "passkey"}},
		{name: "quarantine_enabled", field: &c.QuarantineEnabled, grants: off, defaultValue: true},
		{name: "log.level", field: &c.LogLevel, grants: never, defaultValue: "info", oneOf: []string{"debug", "info", "warn", "error"}},
		{name: "log.format", field: &c.LogFormat, grants: never, defaultValue: "text", oneOf: []string{"text", "json"}, restart: true},
		{name: "mcpServers", field: &c.Servers, grants: inside},
		{name: "profiles", field: &c.Profiles, grants: inside},
		{name: "registries", field: &c.Registries, grants: asksThere, checkName: checkRegistryName, check: checkRegistry},
		{name: "oidc.issuers", field: &c.OIDC.Issuers, grants: always},
		{name: "oidc.public_client_id", field: &c.OIDC.ClientID, grants: never, check: checkClientIDIfSet},
		{name: "oidc.request_scopes", field: &c.OIDC.Scopes, grants: never, check: checkOAuthScope},
		{name: "users", field: &c.Users, grants: always},
		{name: "telemetry.endpoint", field: &c.TelemetryEndpoint, grants: sent, check: checkTelemetryEndpoint, restart: true},
		{name: "notify.desktop", field: &c.NotifyDesktop, grants: never, defaultValue: true},
		{name: "notify.webhooks", field: &c.Webhooks, grants: notified},
	}
}

// keys returns the keys of a notify.webhooks entry, bound to w. The rule of notify.webhooks decides about all of them.
func (w *Webhook) keys() []configKey {
	return []configKey{
		{name: "url", field: &w.URL, grants: never, secrets: true, check: checkURL, secret: true, mask: maskWebhookURL},
		{name: "format", field: &w.Format, grants: never, defaultValue: WebhookJSON, oneOf: []string{"json", "slack", "teams"}},
		{name: "secret", field: &w.Secret, grants: never, secrets: true, check: checkOneLine, secret: true},
		{name: "events", field: &w.Events, grants: never, check: checkNotifyEvent},
		{name: "allow_private", field: &w.AllowPrivate, grants: never},
	}
}

// keys returns the keys of an oidc.issuers entry, bound to i. The rule of oidc.issuers decides about all of them.
func (i *OIDCIssuer) keys() []configKey {
	return []configKey{
		{name: "issuer", field: &i.Issuer, grants: never, check: users.CheckURL},
		{name: "label", field: &i.Label, grants: never, check: CheckProfileName},
		{name: "audiences", field: &i.Audiences, grants: never, check: checkNotEmpty},
		{name: "api_audiences", field: &i.APIAudiences, grants: never, check: checkNotEmpty},
		{name: "client_ids", field: &i.ClientIDs, grants: never, check: checkNotEmpty},
		{name: "name_claim", field: &i.NameClaim, grants: never, defaultValue: "email", check: checkNotEmpty},
		{name: "groups_claim", field: &i.GroupsClaim, grants: never, defaultValue: "groups", check: checkNotEmpty},
		{name: "trust_email", field: &i.TrustEmail, grants: never},
		{name: "ignore_scopes", field: &i.IgnoreScopes, grants: never},
		{name: "check", field: &i.Check, grants: never, defaultValue: users.CheckUserInfo, oneOf: users.Checks()},
		{name: "client_id", field: &i.ClientID, grants: never, check: checkOneLine},
		{name: "client_secret", field: &i.ClientSecret, grants: never, check: checkOneLine, secret: true},
		{name: "max_token_lifetime", field: &i.MaxTokenLifetime, grants: never, defaultValue: time.Minute, shortest: time.Second, longest: 24 * time.Hour},
	}
}

// keys returns the keys of a users entry, bound to u. The rule of users decides about all of them.
func (u *UserRule) keys() []configKey {
	return []configKey{
		{name: "issuer", field: &u.Issuer, grants: never, check: users.CheckURL},
		{name: "subjects", field: &u.Subjects, grants: never, check: checkNotEmpty},
		{name: "emails", field: &u.Emails, grants: never, check: checkEmailPattern},
		{name: "groups", field: &u.Groups, grants: never, check: checkNotEmpty},
		{name: "profile", field: &u.Profile, grants: never, check: CheckProfileName},
		{name: "lanes", field: &u.Lanes, grants: never, check: checkLaneName},
		{name: "role", field: &u.Role, grants: never, defaultValue: auth.RoleNames()[0], oneOf: auth.RoleNames()},
		{name: "calls_per_minute", field: &u.CallsPerMinute, grants: never, max: 1_000_000},
		{name: "calls_in_flight", field: &u.CallsInFlight, grants: never, max: 1_000_000},
		{name: "result_mb_per_day", field: &u.ResultMBPerDay, grants: never, max: 1 << 30},
	}
}

// keys returns the keys of an mcpServers entry, bound to s.
func (s *Server) keys() []configKey {
	return []configKey{
		{name: "name", field: &s.Name, grants: never, check: tool.CheckServerName},
		{name: "protocol", field: &s.Protocol, grants: always, defaultValue: "auto", oneOf: []string{"auto", "stdio", "http", "sse"}, aliases: []string{"type", "transport"},
			spellings: map[string]string{"local": "stdio", "remote": "auto", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"}},
		{name: "command", field: &s.Command, grants: always, secrets: true, check: checkNotEmpty},
		{name: "args", field: &s.Args, grants: always, secrets: true},
		{name: "env", field: &s.Env, grants: always, secrets: true, aliases: []string{"environment"}, checkName: checkEnvName, secret: true},
		{name: "working_dir", field: &s.WorkingDir, grants: always, secrets: true, check: checkAbsoluteDir, aliases: []string{"cwd"}},
		{name: "pin", field: &s.Pin, grants: always, check: pin.Check},
		{name: "previous_pins", field: &s.PreviousPins, grants: never, check: pin.Check},
		{name: "url", field: &s.URL, grants: always, secrets: true, check: checkURL, aliases: []string{"serverUrl", "httpUrl"}},
		{name: "headers", field: &s.Headers, grants: always, secrets: true, checkName: checkHeaderName, check: checkHeaderValue, folded: true, secret: true},
		{name: "allow_private", field: &s.AllowPrivate, grants: on},
		{name: "oauth.client_id", field: &s.OAuth.ClientID, grants: always, secrets: true, check: checkOneLine},
		{name: "oauth.client_secret", field: &s.OAuth.ClientSecret, grants: always, secrets: true, check: checkOneLine, secret: true},
		{name: "oauth.client_metadata_url", field: &s.OAuth.ClientMetadataURL, grants: always, secrets: true, check: checkClientMetadataURL},
		{name: "oauth.authorization_server", field: &s.OAuth.AuthorizationServer, grants: always, secrets: true, check: checkURL},
		{name: "oauth.scopes", field: &s.OAuth.Scopes, grants: always, secrets: true, check: checkOAuthScope},
		{name: "oauth.redirect_port", field: &s.OAuth.RedirectPort, grants: always, max: 65535},
		{name: "sandbox.mode", field: &s.Sandbox.Mode, grants: always, defaultValue: sandbox.Off, oneOf: sandbox.Modes(), alone: string(sandbox.Off)},
		{name: "sandbox.read", field: &s.Sandbox.Read, grants: always, check: checkAbsolutePath},
		{name: "sandbox.write", field: &s.Sandbox.Write, grants: always, check: checkAbsolutePath},
		{name: "sandbox.network", field: &s.Sandbox.Network, grants: always, defaultValue: sandbox.NoNetwork, oneOf: []string{string(sandbox.NoNetwork), string(sandbox.AllNetwork)}},
		{name: "sandbox.image", field: &s.Sandbox.Image, grants: always, check: checkImage},
		{name: "sandbox.best_effort", field: &s.Sandbox.BestEffort, grants: always},
		{name: "trust_sandbox", field: &s.TrustSandbox, grants: on},
		{name: "enabled", field: &s.Enabled, grants: on, defaultValue: true, inverse: "disabled"},
		{name: "quarantined", field: &s.Quarantined, grants: off},
		{name: "lazy", field: &s.Lazy, grants: never},
		{name: "session", field: &s.Session, grants: newStrictToLooseRule(string(SessionPerClient), string(SessionAuto), string(SessionShared)), defaultValue: SessionAuto, oneOf: []string{"auto", "per_client", "shared"}},
		{name: "trust", field: &s.Trust, grants: newStrictToLooseRule(TrustValues()...), oneOf: TrustValues()},
		{name: "enabled_tools", field: &s.EnabledTools, grants: admits, check: checkPattern, aliases: []string{"enabledTools", "includeTools", "tools"}},
		{name: "disabled_tools", field: &s.DisabledTools, grants: drops, check: checkPattern, aliases: []string{"disabledTools", "excludeTools"}},
		{name: "hint_overrides", field: &s.HintOverrides, grants: inside},
		{name: "call_timeout", field: &s.CallTimeout, grants: never, shortest: time.Millisecond, longest: 24 * time.Hour},
		{name: "max_concurrent_calls", field: &s.MaxConcurrent, grants: never, max: 1_000_000},
		{name: "validate_arguments", field: &s.ValidateArguments, grants: validated, oneOf: []string{"reject", "warn", "off"}},
		{name: "infer_hints", field: &s.InferHints, grants: inferred, oneOf: InferValues()},
		{name: "lanes", field: &s.Lanes, grants: inside},
		{name: "ask.write", field: &s.Ask.Write, grants: asked, oneOf: policy.AskModeNames()},
		{name: "ask.destructive", field: &s.Ask.Destructive, grants: asked, oneOf: policy.AskModeNames()},
		{name: "ask.tools", field: &s.Ask.Tools, grants: askedTools, checkName: checkPattern, check: checkAskMode},
		{name: "ask.wait", field: &s.Ask.Wait, grants: never, shortest: shortestWait, longest: longestWait},
		{name: "select", field: &s.Selections, grants: never},
		{name: "tools", field: &s.ToolSettings, grants: always},
	}
}

// keys returns the keys of a profiles entry, bound to p.
func (p *Profile) keys() []configKey {
	return []configKey{
		{name: "servers", field: &p.Servers, grants: admits, check: CheckServerPattern},
		{name: "tools", field: &p.Tools, grants: inside},
		{name: "lanes", field: &p.Lanes, grants: admits, check: checkLaneName},
		{name: "ask.write", field: &p.Ask.Write, grants: asked, oneOf: policy.AskModeNames()},
		{name: "ask.destructive", field: &p.Ask.Destructive, grants: asked, oneOf: policy.AskModeNames()},
		{name: "ask.tools", field: &p.Ask.Tools, grants: askedTools, checkName: checkToolPattern, check: checkAskMode},
	}
}

// keys returns the keys of a lanes entry, bound to r.
func (r *ArgumentLaneRule) keys() []configKey {
	return []configKey{
		{name: "by", field: &r.By, grants: always, oneOf: policy.ArgumentKindNames()},
		{name: "argument", field: &r.Argument, grants: always, check: checkArgumentPath},
		{name: "read", field: &r.Read, grants: adds, check: checkPattern},
		{name: "write", field: &r.Write, grants: drops, check: checkPattern},
		{name: "destructive", field: &r.Destructive, grants: drops, check: checkPattern},
	}
}

// keys returns the keys of an entry in a server's tools, bound to t.
func (t *ToolSettings) keys() []configKey {
	return []configKey{
		{name: "alias", field: &t.Alias, grants: always, check: CheckToolAlias},
		{name: "description", field: &t.Description, grants: always, check: CheckToolText},
		{name: "add_description", field: &t.AddDescription, grants: always, check: CheckToolText},
		{name: "always", field: &t.Always, grants: always},
	}
}

// entryName and keys describe an entry of an object whose names the user chooses.
func (o HintOverride) entryName() string     { return o.Pattern }
func (r ArgumentLaneRule) entryName() string { return r.Pattern }
func (s ResultSelection) entryName() string  { return s.Pattern }
func (t ToolSettings) entryName() string     { return t.Tool }
func (p Profile) entryName() string          { return p.Name }
func (o *HintOverride) keys() []configKey    { return hintKeys(&o.Hints) }

// entryNames returns the names of entries.
func entryNames[T interface{ entryName() string }](all []T) (names []string) {
	for _, one := range all {
		names = append(names, one.entryName())
	}
	return names
}

// hintKeys returns the keys of a hint_overrides entry, bound to h.
func hintKeys(h *tool.Hints) []configKey {
	return []configKey{
		{name: "title", field: &h.Title, grants: always},
		{name: "readOnlyHint", field: &h.ReadOnly, grants: newHintLooseningRule(tool.True)},
		{name: "destructiveHint", field: &h.Destructive, grants: newHintLooseningRule(tool.False)},
		{name: "idempotentHint", field: &h.Idempotent, grants: newHintLooseningRule(tool.True)},
		{name: "openWorldHint", field: &h.OpenWorld, grants: newHintLooseningRule(tool.False)},
	}
}
