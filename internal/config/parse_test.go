package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/config/auth/users"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream/sandbox"
)

var exported = cmpopts.IgnoreUnexported(Config{}, Server{}, Profile{})

// Parse decodes and checks a configuration file. lookup is the environment, for references and the home directory;
// nil means an empty environment. The error is a *problem.Problem INVALID_CONFIG that lists all mistakes; its detail
// "problems" is a []Mistake.
func Parse(data []byte, lookup func(name string) (string, bool)) (*Config, error) {
	return parseInput{file: FileName, data: data, lookup: lookup}.parseConfig()
}

func mustParse(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text), env)
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	want := &Config{
		Listen: "127.0.0.1:8080", DataDir: "/home/me/.mcpproxy", Database: "sqlite",
		ToolsLimit: 10, ToolsDetail: Auto, DiscoveryLimit: 40_000, ResultLimit: 60000, MCPManagement: ManagePropose,
		CallTimeout: 2 * time.Minute, ConnectTimeout: 30 * time.Second,
		MaxConcurrent: 1024, QueueSize: 4096, QueueTimeout: 30 * time.Second,
		ValidateArguments: ValidateReject,
		Activity:          Activity{RetentionDays: 90, MaxRecords: 1_000_000, MaxSizeMB: 1024, MaxResponseSize: 65_536, Durability: SurviveProcess},
		Intent:            policy.Rules{StrictServerValidation: true, InferHints: policy.InferAdvise, JudgeArguments: policy.ArgumentsAdvise},
		Ask:               policy.AskRules{Write: policy.AskOff, Destructive: policy.AskOff, Wait: 45 * time.Second},
		QuarantineEnabled: true, NotifyDesktop: true,
		LogLevel: "info", LogFormat: "text", Presence: PresenceNone,
	}
	if diff := cmp.Diff(want, mustParse(t, "{}"), exported); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want.DataDir = "~/.mcpproxy"
	if diff := cmp.Diff(want, DefaultConfig(), exported); diff != "" {
		t.Errorf("Default: -want +got:\n%s", diff)
	}
}

func TestEverything(t *testing.T) {
	text, err := os.ReadFile("testdata/good/everything.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Listen: "0.0.0.0:9000", DataDir: "/srv/data", Database: "postgres://mcpproxy:t0p-s3cret@db.example.com/mcpproxy?sslmode=verify-full", APIKey: "t0p-s3cret", RequireMCPAuth: true,
		TrustedHosts: []string{"mcp.example.com", "mcp.example.com:8443"},
		TLS:          TLS{CertificateFile: "/etc/mcpproxy/tls.crt", KeyFile: "/home/me/tls.key"}, TrustedProxies: []string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"}, PublicURL: "https://mcp.example.com/mcpproxy/",
		ToolsLimit: 25, ToolsDetail: Compact, DiscoveryLimit: 20_000, ResultLimit: 0, MCPManagement: ManageOff,
		CallTimeout: 90 * time.Second, ConnectTimeout: time.Minute, IdleTimeout: 10 * time.Minute,
		MaxConcurrent: 8, QueueSize: 16, QueueTimeout: 1500 * time.Millisecond,
		ValidateArguments: ValidateWarn,
		Activity:          Activity{RetentionDays: 7, MaxRecords: 5000, MaxSizeMB: 64, MaxResponseSize: 1024, Durability: SurvivePower},
		Intent:            policy.Rules{RequireIntent: true, InferHints: policy.InferEnforce, JudgeArguments: policy.ArgumentsEnforce},
		Ask:               policy.AskRules{Write: policy.AskOn, Destructive: policy.AskOn, Tools: map[string]string{"files:list_*": "off", "git*:x": "ask"}, Wait: 2 * time.Minute},
		LogLevel:          "debug", LogFormat: "json", Presence: PresenceNone, TelemetryEndpoint: "http://127.0.0.1:4318",
		OIDC: OIDC{ClientID: "desktop", Scopes: []string{"openid", "email"}, Issuers: []OIDCIssuer{
			{Issuer: "https://login.example.com", Audiences: []string{"mcp"}, APIAudiences: []string{"mcp-api"}, ClientIDs: []string{"a", "b"}, NameClaim: "sub", GroupsClaim: "roles", TrustEmail: true,
				Check: users.CheckIntrospection, ClientID: "mcpproxy", ClientSecret: "client-secret-in-the-file", MaxTokenLifetime: time.Minute},
			{Issuer: "https://other.example.com/realms/x", Label: "x", NameClaim: "email", GroupsClaim: "groups", IgnoreScopes: true, Check: users.CheckOff, MaxTokenLifetime: 10 * time.Minute},
		}},
		Users: []UserRule{
			{Issuer: "https://login.example.com", Subjects: []string{"1"}, Role: "admin"},
			{Issuer: "https://login.example.com", Emails: []string{"a@example.com", "@example.org"}, Role: "reviewer"},
			{Issuer: "https://other.example.com/realms/x", Groups: []string{"team"}, Profile: "research", Lanes: []string{"read"}, Role: "user", CallsPerMinute: 60, CallsInFlight: 4, ResultMBPerDay: 100},
		},
		Webhooks: []Webhook{
			{URL: "https://hooks.slack.com/services/T0/B0/token0123", Format: WebhookSlack, Events: []string{NotifyCallHeld}},
			{URL: "\x00hook\x00", Format: WebhookJSON, Secret: "\x00hook_secret\x00", AllowPrivate: true},
		},
		Servers: []Server{
			{Name: "files", Protocol: "stdio", Launch: Launch{Command: "npx", Args: []string{"-y", "server", "--token=t0p-s3cret"}, Env: map[string]string{"TOKEN": "t0p-s3cret", "MODE": "ro"}, WorkingDir: "/home/me/notes"}, Enabled: true, Quarantined: true, Lazy: true, Session: SessionShared, Trust: TrustManual, DisabledTools: []string{"delete_*", "a/b:c[0]"}, HintOverrides: []HintOverride{
				{"*", tool.Hints{ReadOnly: tool.True}},
				{"move_?", tool.Hints{Title: "Move", ReadOnly: tool.False, Destructive: tool.True, Idempotent: tool.False, OpenWorld: tool.False}},
				{"a", tool.Hints{}},
			}, CallTimeout: 5 * time.Second, MaxConcurrent: 2, ValidateArguments: ValidateOff, InferHints: policy.InferAdvise, Lanes: []ArgumentLaneRule{{Pattern: "run", By: policy.ByShell, Argument: "$.command"}, {Pattern: "manage_*", By: policy.ByAction, Argument: "$.request.operation", Read: []string{"list", "get_*"}, Destructive: []string{"delete"}}}, Ask: policy.AskRules{Write: policy.AskOff, Tools: map[string]string{"move_?": "ask"}, Wait: 10 * time.Second},
				Sandbox: sandbox.Rules{Mode: sandbox.Container, Read: []string{"/home/me/notes"}, Write: []string{"/srv/notes"}, Network: sandbox.AllNetwork, Image: "docker.io/library/node:22", BestEffort: true}, TrustSandbox: true},
			{Name: "plain", Protocol: "stdio", Launch: Launch{Command: "x"}, Enabled: true, Session: SessionAuto, Trust: TrustAuto, Sandbox: sandbox.Rules{Mode: sandbox.Off, Network: sandbox.NoNetwork}},
			{Name: "github.com", Protocol: "http", Launch: Launch{URL: "https://api.example.com/mcp?x=1", Headers: map[string]string{"Authorization": "Bearer t0p-s3cret"}}, EnabledTools: []string{"get_*"}, Session: SessionAuto, Trust: TrustAuto, Sandbox: sandbox.Rules{Mode: sandbox.Off, Network: sandbox.NoNetwork}},
		},
		Profiles: []Profile{
			{Name: "research", Servers: []string{"github.com", "f*"}, Tools: []auth.ToolPatterns{{Server: "github.com", Patterns: []string{"list_*", "get_*"}}, {Server: "f*", Patterns: []string{"compact"}}}, Lanes: []string{"read"}, Ask: policy.AskRules{Destructive: policy.AskOn, Tools: map[string]string{"*:*": "off"}}},
			{Name: "open"},
		},
	}
	got := mustParse(t, string(text))
	if r := auth.NewScope(got.ProfileRule("research")); !r.AllowsTool("files", "compact") || r.AllowsTool("files", "x") || !r.AllowsTool("github.com", "get_x") || r.AllowsTool("other", "get_x") || r.Lanes() != 1<<auth.Read {
		t.Error("the rule of a profile differs from the file")
	}
	if got.ProfileRule("none") != nil || auth.NewScope(got.ProfileRule("open")).Lanes() != auth.AllLanes {
		t.Error("a missing profile has a rule, or a profile without limits restricts lanes")
	}
	if diff := cmp.Diff(want, got, exported); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	golden(t, "testdata/good/everything.shown.json", indented(t, got))
}

func TestTrust(t *testing.T) {
	for _, c := range []struct {
		top, server string
		want        Trust
	}{
		{``, ``, TrustScan},
		{`"quarantine_enabled": true,`, ``, TrustScan},
		{`"quarantine_enabled": false,`, ``, TrustAuto},
		{`"quarantine_enabled": false,`, `"trust": "manual",`, TrustManual},
		{`"quarantine_enabled": false,`, `"trust": "scan",`, TrustScan},
		{``, `"trust": "auto",`, TrustAuto},
	} {
		// The order of the keys does not matter.
		for _, form := range []string{`{%s "mcpServers": {"a": {%s "command": "x"}}}`, `{"mcpServers": [{%[2]s "name": "a", "command": "x"}], %[1]s}`} {
			text := fmt.Sprintf(form, c.top, c.server)
			if got := mustParse(t, text).Servers[0].Trust; got != c.want {
				t.Errorf("%s gives %q, want %q", text, got, c.want)
			}
		}
	}
}

func indented(t *testing.T, c *Config) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(c.String()), "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current (go test ./internal/config -update): -want +got:\n%s", file, diff)
	}
}

func TestFormsOfServersAreEqual(t *testing.T) {
	object := `{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"url": "http://b.example/mcp"}}}`
	list := `{"mcpServers": [{"args": ["1"], "command": "x", "name": "a"}, {"name": "b", "url": "http://b.example/mcp"}]}`
	a, b := mustParse(t, object), mustParse(t, list)
	if diff := cmp.Diff(a, b, exported); diff != "" {
		t.Errorf("the forms differ: %s", diff)
	}
	if a.String() != b.String() {
		t.Errorf("the output of the two forms differs:\n%s\n%s", a, b)
	}
}

func TestAliases(t *testing.T) {
	canonical := `{"mcpServers": {"a": {"command": "x", "working_dir": "/tmp", "protocol": "stdio", "enabled": false}, "b": {"url": "http://b.example/mcp", "protocol": "http"}, "c": {"url": "http://c.example/mcp", "enabled": true}}}`
	for name, text := range map[string]string{
		"one":   `{"mcpServers": {"a": {"command": "x", "cwd": "/tmp", "type": "stdio", "disabled": true}, "b": {"serverUrl": "http://b.example/mcp", "type": "http"}, "c": {"httpUrl": "http://c.example/mcp", "disabled": false}}}`,
		"other": `{"mcpServers": {"a": {"command": "x", "cwd": "/tmp", "transport": "stdio", "disabled": true}, "b": {"httpUrl": "http://b.example/mcp", "transport": "streamable-http"}, "c": {"serverUrl": "http://c.example/mcp"}}}`,
		"third": `{"mcpServers": {"a": {"command": "x", "cwd": "/tmp", "type": "stdio", "disabled": true}, "b": {"url": "http://b.example/mcp", "type": "streamableHttp"}, "c": {"url": "http://c.example/mcp", "type": "auto"}}}`,
	} {
		if diff := cmp.Diff(mustParse(t, canonical), mustParse(t, text), exported); diff != "" {
			t.Errorf("%s: -canonical +alias:\n%s", name, diff)
		}
	}
}

func TestComments(t *testing.T) {
	c := mustParse(t, "// first\n{ /* \"listen\": 5 */ \"tools_limit\": /* five */ 5, // \"x\n \"mcpServers\": {/*none*/},\n}\n// last, without a newline")
	if c.ToolsLimit != 5 || len(c.Servers) != 0 {
		t.Errorf("got %v", c)
	}
}

// TestRevision checks that two configurations have the same revision only if no value that may be shown differs.
func TestRevision(t *testing.T) {
	const text = `{"tools_limit": 5, "mcpServers": {"a": {"command": "x", "env": {"TOKEN": "s3cret"}}}}`
	revision := mustParse(t, text).Revision()
	if len(revision) != 12 {
		t.Fatalf("%q", revision)
	}
	for same, text := range map[string]string{
		"order and comments": `{"mcpServers": {"a": {"env": {"TOKEN": "s3cret"}, "command": "x"}}, /* five */ "tools_limit": 5,}`,
		"a default":          `{"tools_limit": 5, "tools_detail": "auto", "mcpServers": {"a": {"command": "x", "env": {"TOKEN": "s3cret"}}}}`,
		"another secret":     `{"tools_limit": 5, "mcpServers": {"a": {"command": "x", "env": {"TOKEN": "other"}}}}`,
	} {
		if got := mustParse(t, text).Revision(); got != revision {
			t.Errorf("%s: %s instead of %s", same, got, revision)
		}
	}
	for other, text := range map[string]string{
		"a key":    `{"tools_limit": 6, "mcpServers": {"a": {"command": "x", "env": {"TOKEN": "s3cret"}}}}`,
		"a server": `{"tools_limit": 5, "mcpServers": {"a": {"command": "x", "env": {"TOKEN": "s3cret"}, "enabled": false}}}`,
		"nothing":  `{}`,
	} {
		if got := mustParse(t, text).Revision(); got == revision {
			t.Errorf("%s does not change the revision", other)
		}
	}
}

func TestReferences(t *testing.T) {
	for raw, want := range map[string]string{
		"${env:TOKEN}":                 "t0p-s3cret",
		"a${env:TOKEN}b${env:WORD}":    "at0p-s3cretbs3cret-word",
		"$${env:TOKEN}":                "${env:TOKEN}",
		"$$${env:TOKEN}":               "$${env:TOKEN}",
		"${HOME} ${a:b} $x ${ $ } ${}": "${HOME} ${a:b} $x ${ $ } ${}",
		"${TOKEN:-env:x}":              "${TOKEN:-env:x}",
		"":                             "",
		"$":                            "$",
	} {
		if e := expandReferences(raw, env); e.text != want || len(e.mistakes)+len(e.missing) > 0 {
			t.Errorf("%q gives %+v, want %q", raw, e, want)
		}
	}
	// References in the value of a variable are not expanded.
	e := expandReferences("${env:A}", func(string) (string, bool) { return "${env:B}", true })
	if e.text != "${env:B}" {
		t.Errorf("resolved twice: %q", e.text)
	}
}

func TestVariablesOfADisabledServer(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {"off": {"disabled": true, "command": "${env:NO}", "env": {"A": "${env:NO}"}}, "on": {"command": "x"}}}`)
	if c.Servers[0].Enabled || !c.Servers[1].Enabled || c.Servers[0].Command != "${env:NO}" {
		t.Errorf("got %+v", c.Servers)
	}
}

// TestSecretsAreNotShown checks that no way of printing a configuration shows a secret.
func TestSecretsAreNotShown(t *testing.T) {
	c := mustParse(t, `{"api_key": "s3cret-1", "data_dir": "${env:DIR}", "mcpServers": {
		"a": {"command": "${env:TOKEN}", "args": ["${env:TOKEN}"], "env": {"A": "s3cret-2", "B": "${env:TOKEN}", "C": "s3cret-${env:TOKEN}"}},
		"b": {"url": "https://x.example/${env:TOKEN}", "headers": {"A": "Bearer ${env:TOKEN}", "B": "Bearer s3cret"}},
		"c": {"url": "https://me:s3cret@x.example/?api_key=s3cret"}}}`)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "c", c, "v", *c, "s", c.Servers[1], "all", c.Servers)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "c", c, "v", *c, "s", c.Servers[1], "all", c.Servers)
	b, err := json.Marshal(map[string]any{"c": c, "v": *c})
	if err != nil {
		t.Fatal(err)
	}
	shown := c.Masked()
	all := map[string]string{
		"json": string(b), "log": log.String(), "shown": fmt.Sprintf("%v", shown.Servers), "shown key": shown.APIKey,
		"%v": fmt.Sprintf("%v %v", c, *c), "%+v": fmt.Sprintf("%+v %+v", c, *c), "%#v": fmt.Sprintf("%#v %#v", c, *c), "String": c.String(),
		"servers": fmt.Sprintf("%v %+v %#v", c.Servers, c.Servers[1], c.Servers[0]),
	}
	for how, text := range all {
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s: %s", how, text)
		}
	}
	for _, want := range []string{`"B":"${env:TOKEN}"`, `"C":"***"`, `"A":"Bearer ${env:TOKEN}"`, `"url":"https://x.example/${env:TOKEN}"`, `"data_dir":"${env:DIR}"`} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("%s is not in %s", want, c)
		}
	}
}

func TestShownWithoutFile(t *testing.T) {
	c := DefaultConfig()
	c.APIKey, c.Servers = "s3cret", []Server{{Name: "a", Launch: Launch{Env: map[string]string{"A": "s3cret"}, Headers: map[string]string{"B": "s3cret"}}}}
	if text := fmt.Sprintf("%v %#v", c, *c); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
	if c.APIKey != "s3cret" || c.Servers[0].Env["A"] != "s3cret" {
		t.Error("printing changed the configuration")
	}
}

// TestShownConfigurationParses checks that the shown configuration can be parsed again and is the same, except for
// the masked values.
func TestShownConfigurationParses(t *testing.T) {
	text, err := os.ReadFile("testdata/good/everything.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, string(text))
	again := mustParse(t, c.String())
	if c.String() != again.String() {
		t.Errorf("the configuration changed:\n%s\n%s", c, again)
	}
}

func TestNearest(t *testing.T) {
	words := keyNamesToSuggest(new(Config).keys())
	for name, want := range map[string]string{
		"lisen": "listen", "dataDir": "data_dir", "apikey": "api_key", "tool_limit": "tools_limit", "mcpserver": "mcpServers",
		"call_timout": "call_timeout", "logs": "log", "retention_days": "activity_retention_days", "schema": "$schema",
		"x": "", "zzzzzzzz": "", "": "",
	} {
		if got := search.ClosestName(name, words); got != want {
			t.Errorf("Meant(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{}"))
	if text, err := os.ReadFile("testdata/good/everything.jsonc"); err == nil {
		f.Add(text)
	}
	for _, s := range []string{
		`{"mcpServers": [{"name": "a", "command": "x"}], /* c */ "log": {"level": "info",},}`, `{"a":`, `"`, `/*`, "//", `{"mcpServers": {"a": {"url": "${env:TOKEN}"}}}`,
		`{"call_timeout": "1h1m", "data_dir": "~"}`, `{"mcpServers":{"a":{"command":"${env:","args":["\ud800"]}}}`, "{\"\\u0000\": 1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, env)
		if err != nil {
			for _, m := range mistakesOf(t, err) {
				if m.Message == "" || m.Line > bytes.Count(data, []byte("\n"))+1 || m.Line > 0 && m.Column < 1 {
					t.Errorf("mistake with an invalid position: %+v", m)
				}
			}
			if strings.Contains(err.Error(), "t0p-s3cret") && !bytes.Contains(data, []byte("s3cret")) {
				t.Errorf("the output contains a resolved value: %v", err)
			}
			return
		}
		if strings.Contains(c.String(), "t0p-s3cret") && !bytes.Contains(data, []byte("s3cret")) {
			t.Errorf("the output contains a resolved value: %v", c)
		}
		if strings.Contains(c.String(), "[masked ") {
			return // a mask is not valid in every position of a secret
		}
		if again, err := Parse([]byte(c.String()), env); err != nil || again.String() != c.String() {
			t.Errorf("the printed configuration cannot be parsed: %v\n%s", err, c)
		}
	})
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.8.9.1:1": true, "[::1]:80": true, "localhost:80": true, "LOCALHOST:0": true, "[::ffff:127.0.0.1]:80": true,
		":8080": false, "0.0.0.0:80": false, "[::]:80": false, "192.168.1.5:80": false, "localhost.example:80": false, "": false, "127.0.0.1": false,
	} {
		if isLoopbackAddress(listen) != want {
			t.Errorf("loopback(%q) is %v", listen, !want)
		}
	}
}

// TestAllProductKeysAreKnown checks that every key of the product is known.
func TestAllProductKeysAreKnown(t *testing.T) {
	top := "listen data_dir database api_key require_mcp_auth trusted_hosts tools_limit tools_detail discovery_limit result_limit mcp_management call_timeout connect_timeout " +
		"idle_timeout max_concurrent_calls queue_size queue_timeout validate_arguments activity_durability activity_retention_days activity_max_records " +
		"activity_max_size_mb activity_max_response_size intent_declaration quarantine_enabled log telemetry mcpServers"
	server := "command args env working_dir url headers oauth protocol enabled quarantined trust enabled_tools disabled_tools hint_overrides call_timeout " +
		"max_concurrent_calls lazy session infer_hints type transport disabled cwd serverUrl httpUrl"
	var text strings.Builder
	for _, name := range strings.Fields(top) {
		if name == "mcpServers" {
			fmt.Fprint(&text, `"mcpServers": {"a": {`)
			for _, inner := range strings.Fields(server) {
				fmt.Fprintf(&text, "%q: null,", inner)
			}
			fmt.Fprint(&text, "}},")
			continue
		}
		fmt.Fprintf(&text, "%q: null,", name)
	}
	_, err := Parse([]byte("{"+text.String()+`"intent_declaration_": 1, "intent_declaration": {}}`), env)
	for _, m := range mistakesOf(t, err) {
		if strings.Contains(m.Message, "unknown key") && m.Path != "intent_declaration_" {
			t.Errorf("%s: %s", m.Path, m.Message)
		}
	}
	mustParse(t, `{"intent_declaration": {"strict_server_validation": true, "require_intent": false, "infer_hints": "off"}}`)
}

// TestNamesStayInTheirDirectory checks that no name, used as a file name, leads out of its directory.
func TestNamesStayInTheirDirectory(t *testing.T) {
	for _, part := range []string{"..", ".", "../x", "x/..", "/x", `..\x`, `c:\x`, "x/y", "x\\u0000", "~/x", "x\\n", "%2e%2e/x", "..%2fx", "‥/x", "．．/x", "x:y", "con/..", "./.", "x y", "-/-"} {
		for _, form := range []string{`{"mcpServers": {"%s": {"command": "x"}}}`, `{"mcpServers": [{"name": "%s", "command": "x"}]}`} {
			for _, around := range []string{"", "a", "a/", "../", "..."} {
				name := around + strings.ReplaceAll(part, `\x`, `\\x`)
				c, err := Parse([]byte(fmt.Sprintf(form, name)), env)
				if err == nil && (strings.ContainsAny(c.Servers[0].Name, `/\:`) || strings.Trim(c.Servers[0].Name, ".") == "" && len(c.Servers[0].Name) < 3) {
					t.Errorf("%q is accepted", name)
				}
			}
		}
	}
}

// TestZeroDurationNeedsNoUnit checks that 0 is accepted as a duration only for keys that allow none.
func TestZeroDurationNeedsNoUnit(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	c, err := Parse([]byte(`{"idle_timeout": 0, "data_dir": "/d"}`), none)
	if err != nil || c.IdleTimeout != 0 {
		t.Errorf("idle_timeout 0: %v, %v", c, err)
	}
	for _, text := range []string{`{"call_timeout": 0}`, `{"idle_timeout": 30}`} {
		if _, err := Parse([]byte(text), none); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// TestExposure checks what is derived from the keys, also after a change was withheld.
func TestExposure(t *testing.T) {
	plain, public := mustParse(t, `{"trusted_hosts": ["a.example"]}`), mustParse(t, `{"require_mcp_auth": true, "trusted_hosts": ["a.example"], "trusted_proxies": ["10.1.2.3/8", "192.0.2.7", "::ffff:192.0.2.8"], "public_url": "https://Mcp.example.com:8443/a/b/"}`)
	if !slices.Equal(plain.AllowedHosts(), []string{"a.example"}) || plain.ProxyAddresses() != nil || plain.PublicPath() != "" || plain.PublicPathAt("") != "" {
		t.Errorf("%+v", plain)
	}
	if !slices.Equal(public.AllowedHosts(), []string{"a.example", "Mcp.example.com:8443"}) || fmt.Sprint(public.ProxyAddresses()) != "[10.0.0.0/8 192.0.2.7/32 192.0.2.8/32]" ||
		public.PublicPath() != "/a/b" || public.PublicPathAt("mcp.example.com:8443") != "/a/b" || public.PublicPathAt("127.0.0.1:8080") != "" {
		t.Errorf("%+v", public)
	}
	if kept := ClampAccess(plain, public); len(kept.AllowedHosts()) != 1 || kept.ProxyAddresses() != nil || kept.PublicPath() != "" {
		t.Errorf("a withheld change: %+v", kept)
	}
	for listen, want := range map[string][2]string{
		"127.0.0.1:8080": {"http://127.0.0.1:8080", "https://127.0.0.1:8080"}, "0.0.0.0:80": {"http://127.0.0.1:80", "https://127.0.0.1:80"}, ":81": {"http://127.0.0.1:81", "https://127.0.0.1:81"},
		"[::]:82": {"http://127.0.0.1:82", "https://127.0.0.1:82"}, "[::1]:83": {"http://[::1]:83", "https://[::1]:83"},
	} {
		if got := [2]string{plain.BaseURL(listen, false), plain.BaseURL(listen, true)}; got != want || public.BaseURL(listen, false) != "https://Mcp.example.com:8443/a/b" {
			t.Errorf("%s: %v, want %v; public %s", listen, got, want, public.BaseURL(listen, false))
		}
	}
}
