// Package config is the configuration file: the table of its keys (tests make
// the JSON Schema and the reference from it), strict decoding with positions,
// defaults, validation of everything at once, and Live, the two-phase
// application of a change.
//
// It guarantees that a bad file changes nothing and is explained completely
// (line, column, nearest known key), that a Config is immutable once it is out,
// and that what is printed of it, in whatever way, holds no secret and no
// resolved reference. It writes to the file only what a command asked for, and
// keeps the rest of it byte for byte. Nobody stores a *Config: whoever needs a
// value asks Live for the current one, or prepares itself when Live announces
// the next.
package config

import (
	"maps"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Config is a decoded, validated configuration with defaults filled in and
// references (${env:NAME}) resolved. Those to secrets (${keyring:NAME}) wait
// until a server is started: see Server.Reveal.
type Config struct {
	Listen            string
	DataDir           string
	Database          string // "sqlite": a file in the data directory; else the address of a PostgreSQL database
	APIKey            string // empty: the one in the data directory
	RequireMCPAuth    bool
	TrustedHosts      []string
	ToolsLimit        int
	ToolsDetail       Detail
	DiscoveryLimit    int // bytes
	LearnFromUse      bool
	ResultLimit       int // bytes; 0 = none
	MCPManagement     Management
	CallTimeout       time.Duration
	ConnectTimeout    time.Duration
	IdleTimeout       time.Duration // 0 = never
	MaxConcurrent     int           // 0 = no limit
	QueueSize         int
	QueueTimeout      time.Duration
	ValidateArguments Validation
	Activity          Activity
	Intent            policy.Rules
	QuarantineEnabled bool
	LogLevel          string
	LogFormat         string
	Ask               policy.AskRules
	AnswerByClient    []string // see AnswersByClient
	Presence          Presence
	TelemetryEndpoint string    // of an OTLP receiver; empty: nothing is sent
	Servers           []Server  // in the order of the file
	Profiles          []Profile // in the order of the file

	// written is how the file says it, with the references and with the secrets; shown
	// is what may be shown of that; both are nil when it was not parsed. warnings are
	// what its file should have otherwise; revision and basis are short for shown.
	written  *Config
	shown    *Config
	warnings []string
	revision string
	basis    string
}

// Revision stands for all that may be shown of a parsed configuration, in 12
// hexadecimal digits: that of another one differs. Comments, order and spelling make no
// difference, nor do secrets: who has the log must not be able to guess them by it.
func (c *Config) Revision() string { return c.revision }

// Basis is Revision without what waits for a restart, such as the address at which this
// instance listens: instances that decide alike have the same.
func (c *Config) Basis() string { return c.basis }

// Server returns the server of that name; nil when there is none.
func (c *Config) Server(name string) *Server {
	for i := range c.Servers {
		if c.Servers[i].Name == name {
			return &c.Servers[i]
		}
	}
	return nil
}

// Profile returns the profile of that name; nil when there is none.
func (c *Config) Profile(name string) *Profile {
	for i := range c.Profiles {
		if c.Profiles[i].Name == name {
			return &c.Profiles[i]
		}
	}
	return nil
}

// ProfileRule returns what a profile lets through; nil when there is no profile of
// that name.
func (c *Config) ProfileRule(name string) *policy.ScopeRule {
	if p := c.Profile(name); p != nil {
		return p.rule
	}
	return nil
}

// Validation returns what happens to arguments that violate the schema of a tool of a
// server.
func (c *Config) Validation(server string) Validation {
	if s := c.Server(server); s != nil && s.ValidateArguments != "" {
		return s.ValidateArguments
	}
	return c.ValidateArguments
}

// Activity is what concerns the log.
type Activity struct {
	RetentionDays   int
	MaxRecords      int
	MaxSizeMB       int
	MaxResponseSize int
	Durability      Durability
}

// Server is one entry of mcpServers.
type Server struct {
	Name     string
	Protocol string // auto, stdio, http, sse; auto is resolved: never in a Config that is out
	TrySSE   bool   // http was not said but follows from url: it may turn out to be sse
	Launch
	AllowPrivate      bool
	OAuth             OAuth
	Enabled           bool
	Quarantined       bool
	Lazy              bool
	Session           Session
	Trust             Trust    // never "" in a Config that is out
	EnabledTools      []string // globs; exclusive with DisabledTools
	DisabledTools     []string
	HintOverrides     []HintOverride   // in the order of the file; the last match wins per hint
	CallTimeout       time.Duration    // 0 = the general one
	MaxConcurrent     int              // 0 = no limit of its own
	ValidateArguments Validation       // "" = the general one
	InferHints        policy.InferMode // "" = the general one
	Lanes             []LaneRule       // in the order of the file; the last match wins
	Ask               policy.AskRules  // its own, beside the general ones
	Selections        []Selection      // likewise

	// written and shown are as those of Config, launch is how the file launches it, and
	// launchFingerprint identifies that; nil when it was not parsed.
	revealed          []string // the secrets in it, after Reveal
	unset             []string // the environment variables that it names and that are not set
	written           *Server
	shown             *Server
	launch            *LaunchView
	launchFingerprint *tool.Fingerprint
}

// Profile is one entry of profiles: a part of all that there is. What is nil does
// not limit.
type Profile struct {
	Name    string
	Servers []string            // names or patterns
	Tools   []policy.ScopeTools // in the order of the file
	Lanes   []string
	Ask     policy.AskRules // which are added; without Wait

	rule *policy.ScopeRule // that follows from it; nil when it was not parsed
}

// OAuth is how a person logs in to a server over HTTP that asks for it.
type OAuth struct {
	ClientID            string
	ClientSecret        string
	ClientMetadataURL   string
	AuthorizationServer string
	Scopes              []string
	RedirectPort        int
}

// HintOverride corrects the hints of the tools that Pattern (a name or a glob) matches.
type HintOverride struct {
	Pattern string
	Hints   tool.Hints
}

// LaneRule says by which argument the tools that Pattern (a name or a glob) matches are
// judged.
type LaneRule struct {
	Pattern     string
	By          policy.LaneBy
	Argument    string   // its path
	Read        []string // actions, or patterns of them
	Write       []string
	Destructive []string
}

// Selection says what the results of the tools that Pattern (a name or a glob) matches are
// shown as, where the caller does not say.
type Selection struct {
	Pattern    string
	Expression string // of jq
	compiled   *policy.Selection
}

// NewSelection compiles a selection.
func NewSelection(pattern, expression string) (Selection, error) {
	compiled, err := policy.CompileSelection(expression)
	return Selection{pattern, expression, compiled}, err
}

// Selection returns what the results of a tool are shown as; nil as they are.
func (c *Config) Selection(id tool.ID) *policy.Selection {
	s := c.Server(id.Server)
	if s == nil {
		return nil
	}
	for _, rule := range slices.Backward(s.Selections) {
		if policy.Matches(rule.Pattern, id.Tool) {
			return rule.compiled
		}
	}
	return nil
}

// The types of keys that have a few words.
type (
	Detail     string // how much retrieve_tools says about a tool
	Management string // what agents may do with upstream_servers
	Validation string // what happens to arguments that violate a tool's schema
	Session    string // whose a session with the server is
	Trust      string // which tools of a server are accepted without a person; "" is not said: treat it as TrustManual
	Durability string // what a record survives
	Presence   string // what shows that a person decides: see package presence
)

// The words.
const (
	Auto    Detail = "auto" // the best matches as full, the others as compact
	Full    Detail = "full"
	Compact Detail = "compact"

	ManagePropose Management = "propose"
	ManageRead    Management = "read"
	ManageOff     Management = "off"

	ValidateReject Validation = "reject"
	ValidateWarn   Validation = "warn"
	ValidateOff    Validation = "off"

	SessionPerClient Session = "per_client"
	SessionShared    Session = "shared"

	TrustManual Trust = "manual"
	TrustScan   Trust = "scan"
	TrustAuto   Trust = "auto"

	SurviveProcess Durability = "process"
	SurvivePower   Durability = "power"

	PresenceNone       Presence = "none"
	PresencePassphrase Presence = "passphrase"
	PresencePasskey    Presence = "passkey"
)

// TrustWords are the kinds of trust, as the file has them.
func TrustWords() []string {
	return []string{string(TrustManual), string(TrustScan), string(TrustAuto)}
}

// InferWords are what may be made of tools that say nothing, as the file has them.
func InferWords() []string {
	return []string{string(policy.InferOff), string(policy.InferAdvise), string(policy.InferEnforce)}
}

// judgeWords are what may be made of what a call does by its arguments, as the file has them.
func judgeWords() []string {
	return []string{string(policy.JudgeOff), string(policy.JudgeAdvise), string(policy.JudgeEnforce)}
}

// ShownLaunch is how s is launched, as it may be shown.
func (s Server) ShownLaunch() LaunchView { return launchOf(s.Shown()) }

func launchOf(s Server) LaunchView {
	return LaunchView{
		Protocol: s.Protocol, Command: s.Command, Args: append([]string{}, s.Args...), WorkingDir: s.WorkingDir, URL: s.URL,
		Env: slices.Sorted(maps.Keys(s.Env)), Headers: slices.Sorted(maps.Keys(s.Headers)),
	}
}

// ExactLaunch is how s is launched as the file says it: with the references, but
// with nothing masked. It is for the person who decides about the launch, since
// a command can be made to look like a secret.
func (s Server) ExactLaunch() LaunchView {
	if s.launch != nil {
		return *s.launch
	}
	return launchOf(s)
}

// LaunchFingerprint identifies how s is launched as the file says it: with the
// references, not with what they stand for, and with what is masked when it is
// shown.
func (s Server) LaunchFingerprint() tool.Fingerprint {
	if s.launchFingerprint != nil {
		return *s.launchFingerprint
	}
	return launchOf(s).fingerprint()
}
