// Package config reads, validates, edits and reloads the configuration file.
//
// Files:
//   - config.go: Config and its parts; launch.go: how a server is started or reached.
//   - config_key.go: a key of the file; keys.go: the tables of all keys, from which tests generate the JSON Schema
//     and the reference; setting.go documents them.
//   - parse.go, decode.go, decode_*.go: strict decoding with positions and defaults; check.go checks values;
//     mistake.go and warning.go report.
//   - expand.go: resolves ${env:NAME}; resolve_secrets.go: resolves ${keyring:NAME} when a server starts;
//     unset_variable.go: variables that are not set.
//   - other_client_keys.go, other_client_references.go: advice for the syntax of other clients.
//   - live.go: LiveConfig, the current configuration. It applies a changed file to all components in two phases.
//     watch.go watches the file.
//   - clamp.go, access_increase.go: which changes grant more access; confirmed.go, unconfirmed.go and confirm.go
//     withhold those changes until a user confirms them.
//   - edit.go, edit_hints.go, file_text.go: change the file.
//   - difference.go, change.go: the differences between two configurations.
//   - masked_json.go, mask.go, secret_spans.go: show a configuration without its secrets.
//   - tool_settings.go: names and texts of the user for tools.
//   - ask_rules.go: which rule makes a call wait for approval.
//   - selfreference.go: rejects a server that is this MCPProxy.
//   - exposure.go: TLS, trusted proxies and the public URL.
//   - paths.go: where the file and the data directory are.
//
// Guarantees:
//   - A bad file changes nothing. Its errors are reported completely, with line, column and nearest known key.
//   - A published Config is immutable. No printed form of it contains a secret or a resolved reference.
//   - The package writes to the file only on a command, and keeps the rest of the file byte for byte.
//
// No code stores a *Config. It reads the current one from LiveConfig, or implements ReloadableComponent and prepares
// for the next one.
package config

import (
	"maps"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/upstream/sandbox"
)

// Config is a decoded, validated configuration with defaults and resolved references
// (${env:NAME}). References to secrets (${keyring:NAME}) are resolved when a server
// starts: see Server.ResolveSecrets.
type Config struct {
	Listen            string
	DataDir           string
	Database          string // "sqlite" for a file in the data directory, else the URL of a PostgreSQL database
	APIKey            string // empty: the key in the data directory is used
	RequireMCPAuth    bool
	TrustedHosts      []string
	TLS               TLS
	TrustedProxies    []string // CIDR ranges and addresses
	PublicURL         string   // URL of MCPProxy for clients; empty: that of the listener
	ToolsLimit        int
	ToolsDetail       ToolDetailLevel
	DiscoveryLimit    int // bytes
	LearnFromUse      bool
	ResultLimit       int // bytes; 0 = no limit
	MCPManagement     ServerManagement
	CallTimeout       time.Duration
	ConnectTimeout    time.Duration
	IdleTimeout       time.Duration // 0 = never
	MaxConcurrent     int           // 0 = no limit
	QueueSize         int
	QueueTimeout      time.Duration
	ValidateArguments ArgumentValidation
	Activity          Activity
	Intent            policy.Rules
	QuarantineEnabled bool
	LogLevel          string
	LogFormat         string
	Ask               policy.AskRules
	AnswerByClient    []string // see ClientMayApprove
	Presence          Presence
	TelemetryEndpoint string    // address of an OTLP receiver; empty: nothing is sent
	NotifyDesktop     bool      // show notifications on the desktop, where there is one
	Webhooks          []Webhook // receivers of notifications, in file order
	Servers           []Server  // in file order
	Profiles          []Profile // in file order

	// asWritten contains the file's values, with references and secrets. shown contains the values that may be shown.
	// Both are nil if the configuration was not parsed. warnings are the warnings about the file; revision and
	// sharedRevision are hashes of shown.
	asWritten      *Config
	shown          *Config
	warnings       []string
	revision       string
	sharedRevision string
	exposure       exposure // derived; zero if the configuration was not parsed
}

// Revision is a hash of the shown configuration, in 12 hexadecimal digits. Comments,
// order, spelling and secrets do not change it, so it does not help to guess a secret.
func (c *Config) Revision() string { return c.revision }

// RevisionWithoutRestartKeys is Revision without the keys that need a restart, such as the listen address. It is the
// same for all instances with the same policy.
func (c *Config) RevisionWithoutRestartKeys() string { return c.sharedRevision }

// Server returns the server of that name, or nil.
func (c *Config) Server(name string) *Server {
	for i := range c.Servers {
		if c.Servers[i].Name == name {
			return &c.Servers[i]
		}
	}
	return nil
}

// Profile returns the profile of that name, or nil.
func (c *Config) Profile(name string) *Profile {
	for i := range c.Profiles {
		if c.Profiles[i].Name == name {
			return &c.Profiles[i]
		}
	}
	return nil
}

// ProfileRule returns the scope rule of a profile, or nil.
func (c *Config) ProfileRule(name string) *policy.ScopeRule {
	if p := c.Profile(name); p != nil {
		return p.rule
	}
	return nil
}

// ArgumentValidationMode returns the mode of argument validation for a server's tools.
func (c *Config) ArgumentValidationMode(server string) ArgumentValidation {
	if s := c.Server(server); s != nil && s.ValidateArguments != "" {
		return s.ValidateArguments
	}
	return c.ValidateArguments
}

// Activity configures the activity log.
type Activity struct {
	RetentionDays   int
	MaxRecords      int
	MaxSizeMB       int
	MaxResponseSize int
	Durability      Durability
}

// Server is an entry of mcpServers.
type Server struct {
	Name     string
	Protocol string // auto, stdio, http, sse; auto is resolved in a published Config
	TrySSE   bool   // http was derived from url, and the server may use sse
	Launch
	Pin               string   // the exact version of the package that the command starts; see package pin
	PreviousPins      []string // earlier pins, the latest first
	AllowPrivate      bool
	OAuth             OAuth
	Enabled           bool
	Quarantined       bool
	Lazy              bool
	Session           SessionSharing
	Trust             Trust    // never "" in a published Config
	EnabledTools      []string // patterns; cannot be combined with DisabledTools
	DisabledTools     []string
	HintOverrides     []HintOverride     // in file order; the last match wins per hint
	CallTimeout       time.Duration      // 0 = the general call_timeout
	MaxConcurrent     int                // 0 = no limit of its own
	ValidateArguments ArgumentValidation // "" = the general mode
	InferHints        policy.InferMode   // "" = the general mode
	Sandbox           sandbox.Rules      // ~ is the home directory
	TrustSandbox      bool               // a sandbox that proves it makes tools count as read
	Lanes             []ArgumentLaneRule // in file order; the last match wins
	Ask               policy.AskRules    // in addition to the general rules
	Selections        []ResultSelection  // in file order; the last match wins
	ToolSettings      []ToolSettings     // in file order; one for each tool

	// asWritten and shown are as in Config. launch is the launch in the file, and launchFingerprint identifies it;
	// both are nil if the server was not parsed.
	revealed          []string // secrets of the server, after ResolveSecrets
	unsetVariables    []string // referenced environment variables that are not set
	asWritten         *Server
	shown             *Server
	launch            *LaunchView
	launchFingerprint *tool.Fingerprint
}

// Webhook is an entry of notify.webhooks: an address that receives notifications.
type Webhook struct {
	URL          string
	Format       WebhookFormat
	Secret       string   // key of the signature; empty: requests are not signed
	Events       []string // empty: all
	AllowPrivate bool
}

// Profile is an entry of profiles: a subset of servers, tools and lanes. A nil field does not limit.
type Profile struct {
	Name    string
	Servers []string            // names or patterns
	Tools   []policy.ScopeTools // in file order
	Lanes   []string
	Ask     policy.AskRules // additional rules; without Wait

	rule *policy.ScopeRule // derived; nil if the profile was not parsed
}

// OAuth configures the login to an HTTP server.
type OAuth struct {
	ClientID            string
	ClientSecret        string
	ClientMetadataURL   string
	AuthorizationServer string
	Scopes              []string
	RedirectPort        int
}

// HintOverride overrides the hints of tools that Pattern (a name or pattern) matches.
type HintOverride struct {
	Pattern string
	Hints   tool.Hints
}

// ArgumentLaneRule sets the argument that determines the lane of calls to tools that Pattern (a
// name or pattern) matches.
type ArgumentLaneRule struct {
	Pattern     string
	By          policy.ArgumentKind
	Argument    string   // path of the argument
	Read        []string // actions, or patterns of them
	Write       []string
	Destructive []string
}

// ToolSettings are the user's name and texts for one tool of a server.
type ToolSettings struct {
	Tool           string // the server's name for the tool; no pattern
	Alias          string // replaces the name for agents; "" to keep it
	Description    string // replaces the server's description; "" to keep it
	AddDescription string // follows the server's description; not together with Description
	Always         bool   // retrieve_tools lists the tool in each answer
}

// ToolSettingsOf returns the settings of a tool, nil if there are none.
func (s *Server) ToolSettingsOf(name string) *ToolSettings {
	for i := range s.ToolSettings {
		if s.ToolSettings[i].Tool == name {
			return &s.ToolSettings[i]
		}
	}
	return nil
}

// ResultSelection selects a part of the results of tools that Pattern (a name or pattern) matches, unless the caller
// selects one.
type ResultSelection struct {
	Pattern    string
	Expression string // jq expression
	compiled   *result.Expression
}

// NewResultSelection compiles a selection.
func NewResultSelection(pattern, expression string) (ResultSelection, error) {
	compiled, err := result.CompileExpression(expression)
	return ResultSelection{pattern, expression, compiled}, err
}

// ResultSelectionFor returns the selection for a tool's results; nil if there is none.
func (c *Config) ResultSelectionFor(id tool.ID) *result.Expression {
	s := c.Server(id.Server)
	if s == nil {
		return nil
	}
	for _, rule := range slices.Backward(s.Selections) {
		if policy.MatchesPattern(rule.Pattern, id.Tool) {
			return rule.compiled
		}
	}
	return nil
}

// Types of keys with fixed values.
type (
	ToolDetailLevel    string // how much retrieve_tools returns for a tool
	ServerManagement   string // operations of upstream_servers that agents may use
	ArgumentValidation string // treatment of arguments that violate a tool's schema
	SessionSharing     string // how clients' sessions map to server sessions
	Trust              string // which tools of a server are accepted automatically; "" is unset: treat it as TrustManual
	Durability         string // failures that a record survives
	Presence           string // how a user proves a decision; see package presence
	WebhookFormat      string // form of the requests to a webhook
)

// The values.
const (
	WebhookJSON  WebhookFormat = "json"
	WebhookSlack WebhookFormat = "slack"
	WebhookTeams WebhookFormat = "teams" // a Microsoft Teams workflow

	Auto    ToolDetailLevel = "auto" // the best matches as full, the others as compact
	Full    ToolDetailLevel = "full"
	Compact ToolDetailLevel = "compact"

	ManagePropose ServerManagement = "propose"
	ManageRead    ServerManagement = "read"
	ManageOff     ServerManagement = "off"

	ValidateReject ArgumentValidation = "reject"
	ValidateWarn   ArgumentValidation = "warn"
	ValidateOff    ArgumentValidation = "off"

	SessionAuto      SessionSharing = "auto"
	SessionPerClient SessionSharing = "per_client"
	SessionShared    SessionSharing = "shared"

	TrustManual Trust = "manual"
	TrustScan   Trust = "scan"
	TrustAuto   Trust = "auto"

	SurviveProcess Durability = "process"
	SurvivePower   Durability = "power"

	PresenceNone       Presence = "none"
	PresencePassphrase Presence = "passphrase"
	PresencePasskey    Presence = "passkey"
)

// TrustValues returns the values of trust.
func TrustValues() []string {
	return []string{string(TrustManual), string(TrustScan), string(TrustAuto)}
}

// InferValues returns the values of infer_hints.
func InferValues() []string {
	return []string{string(policy.InferOff), string(policy.InferAdvise), string(policy.InferEnforce)}
}

// judgeValues returns the values of judge_arguments.
func judgeValues() []string {
	return []string{string(policy.ArgumentsOff), string(policy.ArgumentsAdvise), string(policy.ArgumentsEnforce)}
}

// MaskedLaunch returns the launch of s as it may be shown.
func (s Server) MaskedLaunch() LaunchView { return newLaunchView(s.Masked()) }

func newLaunchView(s Server) LaunchView {
	return LaunchView{
		Protocol: s.Protocol, Command: s.Command, Args: append([]string{}, s.Args...), WorkingDir: s.WorkingDir, URL: s.URL, Pin: s.Pin,
		Env: slices.Sorted(maps.Keys(s.Env)), Headers: slices.Sorted(maps.Keys(s.Headers)), Sandbox: s.sandboxOrNil(),
	}
}

// sandboxOrNil returns the sandbox; nil without one, so that the fingerprints of other launches do not change.
func (s Server) sandboxOrNil() *sandbox.Rules {
	if !s.Sandbox.IsOn() {
		return nil
	}
	rules := s.Sandbox
	return &rules
}

// WithPin returns the server with another pin.
func (s Server) WithPin(pin string) Server {
	launch := s.ExactLaunch()
	s.Pin, launch.Pin = pin, pin
	fingerprint := launch.fingerprint()
	s.launch, s.launchFingerprint = &launch, &fingerprint
	return s
}

// ExactLaunch returns the launch of s as in the file: with references, but nothing masked. It is for the user who
// approves the launch, because masking could hide a command that looks like a secret.
func (s Server) ExactLaunch() LaunchView {
	if s.launch != nil {
		return *s.launch
	}
	return newLaunchView(s)
}

// LaunchFingerprint identifies the launch of s as in the file. It covers references instead of their values, and
// unmasked text.
func (s Server) LaunchFingerprint() tool.Fingerprint {
	if s.launchFingerprint != nil {
		return *s.launchFingerprint
	}
	return newLaunchView(s).fingerprint()
}
