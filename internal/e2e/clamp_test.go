package e2e

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/mcptest"
)

// owner is a user who has set a passphrase and signs requests with it.
type owner struct {
	*daemon
	key    ed25519.PrivateKey
	signs  bool
	signed []presence.Claim // the claims of the last signature
}

// errStopped is returned by permit when the owner does not sign.
var errStopped = errors.New("not signed")

func (o *owner) permit(_ context.Context, a presence.SignRequest) (presence.SignedStatement, error) {
	if !o.signs {
		return presence.SignedStatement{}, errStopped
	}
	o.signed = a.Claims
	return presence.SignStatement(a.Statement, o.key), nil
}

func (o *owner) client() *api.Client {
	return api.NewClient(api.Endpoint{Socket: api.SocketPath(o.dataDir()), Source: activity.SourceCLI, Version: "test", Permit: o.permit})
}

// owned sets a passphrase and returns its owner.
func owned(t *testing.T, d *daemon) *owner {
	t.Helper()
	o := &owner{daemon: d, signs: true}
	c := o.client()
	defer c.Close()
	now, err := api.GetPresence.Call(t.Context(), c, ops.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	var head presence.Digest
	if err := head.UnmarshalText([]byte(now.Head)); err != nil {
		t.Fatal(err)
	}
	anchor, key, err := presence.NewPassphraseAnchor([]byte("nobody types this but me"), head, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o.key = key
	text, err := anchor.StoredJSON()
	if err != nil {
		t.Fatal(err)
	}
	v, err := api.SetPresence.Call(t.Context(), c, ops.SetAnchorRequest{Anchor: text})
	if err != nil || !v.On || v.Void != "" {
		t.Fatalf("%+v, %v", v, err)
	}
	return o
}

// config returns the configuration as the API shows it.
func (o *owner) config() ops.Config {
	o.t.Helper()
	c := o.client()
	defer c.Close()
	shown, err := api.GetConfig.Call(context.Background(), c, ops.Nothing{})
	if err != nil {
		o.t.Fatal(err)
	}
	return shown
}

// edited writes the file and waits until the daemon has read it.
func (o *owner) edited(text string) ops.Config {
	o.t.Helper()
	o.writeConfig(text)
	var shown ops.Config
	eventually(o.t, "the daemon has read the file", func() error {
		if shown = o.config(); shown.ETag != shown.InForceETag || shown.Error != "" {
			return errors.New(shown.Error)
		}
		return nil
	})
	return shown
}

func (o *owner) confirm() error {
	c := o.client()
	defer c.Close()
	_, err := api.ConfirmConfig.Call(context.Background(), c, ops.Nothing{})
	return err
}

func (o *owner) again() {
	o.t.Helper()
	o.stop()
	o.start()
	eventually(o.t, "the signed state is loaded", func() error {
		c := o.client()
		defer c.Close()
		v, err := api.GetPresence.Call(context.Background(), c, ops.Nothing{})
		if err == nil && v.Void != "" {
			err = errors.New(v.Void)
		}
		return err
	})
	o.edited(o.file())
}

func (o *owner) file() string {
	o.t.Helper()
	text, err := os.ReadFile(o.configPath())
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

func waiting(c ops.Config) (keys []string) {
	for _, d := range c.Unconfirmed {
		keys = append(keys, d.Key)
	}
	slices.Sort(keys)
	return keys
}

// inForce returns the applied settings by key.
func inForce(c ops.Config) map[string]string {
	all := map[string]string{}
	for _, s := range c.Settings {
		all[s.Key] = string(s.Value)
	}
	return all
}

// widenings lists, for each key that can grant more access, a value and a value that grants more; "" means the key is
// absent. The keys of servers and profiles are tested in two objects each, because their lists of tools exclude each
// other.
var widenings = map[string][][3]string{
	"": {
		{"listen", `"127.0.0.1:9"`, `"0.0.0.0:9"`}, {"data_dir", `"/srv/a"`, `"/srv/b"`}, {"database", ``, `"postgres://nobody@127.0.0.1:1/none"`}, {"api_key", ``, `"k3y-of-somebody-else"`},
		{"require_mcp_auth", `true`, `false`}, {"trusted_hosts", `["a.example"]`, `["a.example", "b.example"]`}, {"mcp_management", `"off"`, `"propose"`}, {"validate_arguments", `"reject"`, `"off"`},
		{"activity_retention_days", `90`, `1`}, {"activity_max_records", `5000`, `1000`}, {"activity_max_size_mb", `512`, `16`}, {"activity_max_response_size", `4096`, `0`}, {"activity_durability", `"power"`, `"process"`},
		{"intent_declaration.strict_server_validation", `true`, `false`}, {"intent_declaration.require_intent", `true`, `false`}, {"intent_declaration.infer_hints", `"enforce"`, `"off"`}, {"intent_declaration.judge_arguments", `"enforce"`, `"off"`},
		{"ask.write", `"ask"`, `"off"`}, {"ask.destructive", `"ask"`, `"off"`}, {"ask.tools", `{"s:*": "ask"}`, `{"s:*": "off"}`}, {"ask.answer_by_client", `["a"]`, `["a", "b"]`}, {"presence", `"passphrase"`, `"none"`}, {"quarantine_enabled", `true`, `false`},
		{"telemetry.endpoint", ``, `"http://127.0.0.1:9"`}, {"notify.webhooks", ``, `[{"url": "http://127.0.0.1:9"}]`},
	},
	"mcpServers.s": {
		{"url", `"URL"`, `"http://127.0.0.1:9/mcp"`}, {"protocol", `"http"`, `"sse"`}, {"headers", `{"A": "s3cret-token-1"}`, `{"A": "s3cret-token-2"}`}, {"allow_private", `false`, `true`},
		{"oauth.client_id", `"a"`, `"b"`}, {"oauth.client_secret", `"s3cret-of-a"`, `"s3cret-of-b"`}, {"oauth.client_metadata_url", `"https://a.example/a"`, `"https://a.example/b"`},
		{"oauth.authorization_server", `"https://a.example"`, `"https://b.example"`}, {"oauth.scopes", `["a"]`, `["a", "b"]`}, {"oauth.redirect_port", `7001`, `7002`},
		{"session", `"per_client"`, `"shared"`}, {"trust", `"manual"`, `"auto"`}, {"enabled_tools", `["look"]`, ``}, {"hint_overrides", `{"wipe": {"destructiveHint": true}}`, `{"wipe": {"readOnlyHint": true}}`},
		{"validate_arguments", `"reject"`, `"off"`}, {"infer_hints", `"enforce"`, `"off"`}, {"lanes", ``, `{"wipe": {"by": "sql", "argument": "$.sql"}}`},
		{"ask.write", `"ask"`, ``}, {"ask.destructive", `"ask"`, `"off"`}, {"ask.tools", `{"wipe": "ask"}`, ``},
	},
	"mcpServers.c": {
		{"command", `"true"`, `"sh"`}, {"args", `["-a"]`, `["-c", "id"]`}, {"env", `{"TOKEN": "s3cret-value-1"}`, `{"TOKEN": "s3cret-value-2"}`}, {"working_dir", `"/"`, `"/tmp"`},
		{"trust", `"scan"`, `"auto"`}, {"enabled", `false`, ``}, {"quarantined", `true`, ``}, {"disabled_tools", `["a", "b"]`, `["b"]`},
	},
	"mcpServers.agents": {{"", ``, `{"command": "sh", "trust": "auto"}`}},
	"profiles.p": {
		{"servers", `["s"]`, ``}, {"tools", `{"s": ["look"]}`, `{"s": ["*"]}`}, {"lanes", `["read"]`, `["read", "write"]`}, {"ask.write", `"ask"`, ``}, {"ask.destructive", `"ask"`, `"off"`}, {"ask.tools", `{"s:look": "ask"}`, ``},
	},
	"profiles.agents": {{"", ``, `{}`}},
}

// fileOf returns a file with the narrower or the wider value of each key. For the keys in but it uses the other value.
func fileOf(url string, wider bool, limit int, but ...string) string {
	top := map[string]json.RawMessage{"tools_limit": json.RawMessage(fmt.Sprint(limit))}
	put := func(in map[string]json.RawMessage, key, value string) {
		group, member, nested := strings.Cut(key, ".")
		if !nested {
			in[key] = json.RawMessage(value)
			return
		}
		inner := map[string]json.RawMessage{}
		_ = json.Unmarshal(in[group], &inner) // absent for the first key of the group
		inner[member] = json.RawMessage(value)
		in[group], _ = json.Marshal(inner)
	}
	for object, keys := range widenings {
		of := map[string]json.RawMessage{}
		for _, k := range keys {
			path := strings.Trim(object+"."+k[0], ".")
			value := k[1]
			if wider && !slices.Contains(but, path) {
				value = k[2]
			}
			switch value = strings.ReplaceAll(value, "URL", url); {
			case value == "":
			case object == "":
				put(top, k[0], value)
			case k[0] == "":
				put(top, object, value)
			default:
				put(of, k[0], value)
			}
		}
		if len(of) > 0 {
			text, _ := json.Marshal(of)
			put(top, object, string(text))
		}
	}
	text, _ := json.MarshalIndent(top, "", "  ")
	return "// by hand\n" + string(text)
}

// TestAccessGrantingEditsWait: a user edits the file in every way that grants more access. MCPProxy applies the rest of
// the file and holds these changes until a user confirms them, also across a restart.
func TestAccessGrantingEditsWait(t *testing.T) {
	t.Parallel()
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"look","inputSchema":{"type":"object"}}`}))
	d := startDaemon(t, fileOf(u.URL, false, 5))
	o := &owner{daemon: d}
	eventually(t, "no setting is applied without an anchor", func() error {
		if shown := o.config(); !strings.Contains(shown.UnconfirmedWhy, "no anchor is set") || !slices.Contains(waiting(shown), "mcpServers.s") {
			return fmt.Errorf("%q %q", shown.UnconfirmedWhy, waiting(shown))
		}
		return nil
	})
	o = owned(t, d)
	before := o.config()
	if len(before.Unconfirmed) > 0 || before.UnconfirmedWhy != "" || inForce(before)["require_mcp_auth"] != "true" || len(o.signed) < 10 {
		t.Fatalf("%q %q, signed %q", before.UnconfirmedWhy, waiting(before), o.signed)
	}
	var all []string
	for object, keys := range widenings {
		for _, k := range keys {
			all = append(all, strings.Trim(object+"."+k[0], "."))
		}
	}
	slices.Sort(all)

	holds := func(shown ops.Config, limit string) {
		t.Helper()
		if got := waiting(shown); !slices.Equal(got, all) {
			t.Errorf("pending changes:\n%q, want\n%q", got, all)
		}
		for key, value := range inForce(shown) {
			if was := inForce(before)[key]; value != was && key != "tools_limit" || key == "tools_limit" && value != limit {
				t.Errorf("%s is %s, was %s", key, value, was)
			}
		}
		raw, _ := json.Marshal(shown.Unconfirmed)
		if text := string(raw); strings.Contains(text, "s3cret") || strings.Contains(text, "k3y-of") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	hand := fileOf(u.URL, true, 7)
	holds(o.edited(hand), "7")
	o.again() // with the confirmed database and API key; otherwise the API is not reachable
	holds(o.config(), "7")
	o.signs = false
	if err := o.confirm(); !errors.Is(err, errStopped) {
		t.Errorf("confirmed without a signature: %v", err)
	}
	holds(o.config(), "7")
	if code, stdout, stderr := o.cli("config", "confirm"); code != 3 || !strings.Contains(stderr, "terminal") || !strings.Contains(stderr, "mcpServers.agents") || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("without a terminal: %d %s %s", code, stdout, stderr)
	}
	if code, stdout, _ := o.cli("doctor", "--only", "D307"); !strings.Contains(stdout, "config confirm") {
		t.Errorf("doctor: %d %s", code, stdout)
	}

	// The user confirms all changes, except those that would move the daemon or replace its data, such as listen and
	// data_dir.
	o.signs = true
	kept := []string{"listen", "data_dir", "database", "api_key", "presence", "activity_max_response_size", "telemetry.endpoint", "mcpServers.s.url", "mcpServers.s.protocol", "mcpServers.c.command"}
	o.edited(fileOf(u.URL, true, 8, kept...))
	if err := o.confirm(); err != nil {
		t.Fatal(err)
	}
	confirmed := func() {
		t.Helper()
		shown := o.config()
		if now := inForce(shown); len(shown.Unconfirmed) > 0 || shown.UnconfirmedWhy != "" || now["require_mcp_auth"] != "false" || now["mcp_management"] != `"propose"` || now["tools_limit"] != "8" {
			t.Errorf("%q %q %v", shown.UnconfirmedWhy, waiting(shown), now)
		}
	}
	confirmed()
	o.again()
	confirmed()

	// A manual edit that restricts access takes effect, and a manual edit cannot undo it.
	wide := o.file()
	if shown := o.edited(strings.Replace(wide, `"propose"`, `"read"`, 1)); len(shown.Unconfirmed) > 0 || inForce(shown)["mcp_management"] != `"read"` {
		t.Errorf("%q", waiting(shown))
	}
	for range 2 {
		if shown := o.edited(wide); !slices.Equal(waiting(shown), []string{"mcp_management"}) || inForce(shown)["mcp_management"] != `"read"` {
			t.Errorf("%q %v", waiting(shown), inForce(shown)["mcp_management"])
		}
		o.again()
	}

	// If the confirmed text is missing or different, no change is applied.
	path := filepath.Join(o.dataDir(), "config-confirmed", "confirmed")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o.stop()
	for why, change := range map[string]func() error{
		"is not the signed one": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(text), `"scan"`, `"auto"`, 1)+" "), 0o600)
		},
		"no configuration was confirmed": func() error { return os.Remove(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		o.start()
		eventually(t, why, func() error {
			shown := o.config()
			if code, body := o.rest("GET", "/servers", ""); !strings.Contains(shown.UnconfirmedWhy, why) || code != 200 || strings.Contains(string(body), u.URL) {
				return fmt.Errorf("%q %s", shown.UnconfirmedWhy, body)
			}
			return nil
		})
		o.stop()
	}
	o.start()
	eventually(t, "the file is confirmed again", o.confirm)
	confirmed()
}

// TestCommandsThatGrantAccess: each command requests a signature for exactly the access that it grants, and the
// signature confirms it.
func TestCommandsThatGrantAccess(t *testing.T) {
	t.Parallel()
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"look","inputSchema":{"type":"object"}}`}))
	d := startDaemon(t, fmt.Sprintf(`{"mcp_management": "off", "mcpServers": {"s": {"url": %q, "trust": "manual"}}}`, u.URL))
	o := owned(t, d)
	o.edited(fmt.Sprintf(`{"mcp_management": "off", "mcpServers": {"s": {"url": %q, "trust": "manual", "session": "shared"}}}`, u.URL)) // by another program
	c := o.client()
	defer c.Close()
	asks := func(name string, do func() error, want ...string) {
		t.Helper()
		o.signed = nil
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var keys []string
		for _, claim := range o.signed {
			if rest, ok := strings.CutPrefix(string(claim), `configuration "`); ok {
				key, _, _ := strings.Cut(rest, `"`)
				keys = append(keys, key)
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("%s: signed %q, want %q", name, o.signed, want)
		}
		if got := waiting(o.config()); !slices.Equal(got, []string{"mcpServers.s.session"}) {
			t.Errorf("%s: pending changes: %q", name, got)
		}
	}
	set := func(key, value string) func() error {
		return func() error {
			_, err := api.ChangeServer.Call(t.Context(), c, api.Change{ServerChange: ops.ServerChange{ServerRef: ops.ServerRef{Name: "s"}, Key: key, Value: json.RawMessage(value)}})
			return err
		}
	}
	asks("trust", set("trust", `"scan"`), "mcpServers.s.trust")
	asks("less", set("trust", `"manual"`))
	asks("disable", func() error {
		_, err := api.DisableServer.Call(t.Context(), c, ops.ServerRef{Name: "s"})
		return err
	})
	asks("enable", func() error {
		_, err := api.EnableServer.Call(t.Context(), c, ops.ServerRef{Name: "s"})
		return err
	}, "mcpServers.s.enabled")
	asks("add", func() error {
		n := ops.AddServerRequest{Name: "n", Quarantined: true}
		n.URL = u.URL
		_, err := api.AddServer.Call(t.Context(), c, n)
		return err
	}, "mcpServers.n")
	review := func() error {
		r, err := api.ReviewServer.Call(t.Context(), c, ops.ServerRef{Name: "n"})
		if err == nil && r.Stage == "" {
			err = errors.New("nothing is reviewed")
		}
		if err == nil {
			_, err = api.ApproveServer.Call(t.Context(), c, ops.ServerDecision{ServerRef: ops.ServerRef{Name: "n"}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: r.Fingerprint}})
		}
		return err
	}
	asks("its launch", review)
	asks("its definitions", func() error {
		var err error
		eventually(t, "the server lists its tools", func() error { err = review(); return err })
		return err
	}, "mcpServers.n.quarantined")
	asks("remove", func() error {
		_, err := api.RemoveServer.Call(t.Context(), c, ops.ServerRef{Name: "n"})
		return err
	})
	keys := func(set map[string]json.RawMessage) func() error {
		return func() error {
			in := ops.SettingChanges{}
			in.IfMatch, in.Set = o.config().ETag, set
			_, err := api.ChangeConfig.Call(t.Context(), c, in)
			return err
		}
	}
	asks("a setting", keys(map[string]json.RawMessage{"tools_limit": json.RawMessage("9")}))
	asks("settings", keys(map[string]json.RawMessage{"tools_limit": json.RawMessage("8"), "mcp_management": json.RawMessage(`"read"`)}), "mcp_management")
	o.signs = false
	for name, do := range map[string]func() error{"trust": set("trust", `"auto"`), "a setting": keys(map[string]json.RawMessage{"mcp_management": json.RawMessage(`"propose"`)}), "off": set("quarantined", "true")} {
		text := o.file()
		if err := do(); (name == "off") != (err == nil) || name != "off" && (!errors.Is(err, errStopped) || o.file() != text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.signs = true
	o.again()
	if now := inForce(o.config()); now["mcp_management"] != `"read"` {
		t.Errorf("%v", now)
	}
}
