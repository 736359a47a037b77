package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// person is a user who signs, or refuses to sign.
type person struct {
	on     bool
	signed map[string]bool
	asked  [][]string // the claims to sign, each time
	refuse error

	void, remedy string
}

func newPerson() *person { return &person{on: true, signed: map[string]bool{}} }

func (p *person) IsOn() bool                       { return p.on }
func (p *person) VoidReason() (why, remedy string) { return p.void, p.remedy }

func (p *person) IsConfirmed(c Claim) bool { return !p.on || p.signed[fmt.Sprintf("%q", c)] }

func (p *person) sign(claims []Claim) {
	for _, c := range claims {
		p.signed[fmt.Sprintf("%q", c)] = true
	}
}

func (p *person) permit(claims ...Claim) error {
	var keys []string
	for _, c := range claims {
		if c.Words == "configuration" {
			keys = append(keys, c.Values[0]+" = "+c.Values[1])
		}
	}
	p.asked = append(p.asked, keys)
	if p.refuse == nil && p.on {
		p.sign(claims)
	}
	return p.refuse
}

// present returns a fixture whose file the person has signed.
func present(t *testing.T, text string) (*fixture, *person) {
	t.Helper()
	dir := t.TempDir()
	f, p := open(t, text, inDir(dir)), newPerson()
	p.on = false
	check(t, f.SetVerifier(p, "here"))
	claims, err := f.PrepareConfirmation()
	check(t, err)
	again, err := f.PrepareConfirmation()
	check(t, err)
	if fmt.Sprint(claims) != fmt.Sprint(again) {
		t.Errorf("the second PrepareConfirmation returned other claims: %q, %q", claims, again)
	}
	p.sign(claims)
	p.on = true
	check(t, f.SetVerifier(p, "here"))
	if u := f.Unconfirmed(); len(u.Differences) > 0 || u.Why != "" {
		t.Fatalf("%+v", u)
	}
	return f, p
}

func inDir(dir string) func(*Options) {
	return func(o *Options) { o.Presence, o.DataDir = true, dir }
}

// restart opens the file again, with another text if text is not empty.
func (f *fixture) restart(t *testing.T, p *person, text string) *fixture {
	t.Helper()
	if text == "" {
		text = contents(t, f.path)
	}
	next := open(t, text, inDir(f.Current().DataDir))
	check(t, next.SetVerifier(p, "here"))
	return next
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) edit1(t *testing.T, text string) {
	t.Helper()
	write(t, f.path, text)
	check(t, f.Reload())
}

// holds checks the current configuration and the keys that await confirmation.
func (f *fixture) holds(t *testing.T, holds func(*Config) bool, waits ...string) {
	t.Helper()
	if !holds(f.Current()) {
		t.Errorf("unexpected current configuration: %v", f.Current())
	}
	if got := differenceKeys(f.Unconfirmed().Differences); !slices.Equal(got, append([]string{}, waits...)) {
		t.Errorf("keys that await confirmation: %q, want %q", got, waits)
	}
	if warned := slices.ContainsFunc(f.Warnings(), func(w string) bool { return strings.Contains(w, "mcpproxy config confirm") }); warned != (len(waits) > 0 || f.Unconfirmed().Why != "") {
		t.Errorf("warnings %q", f.Warnings())
	}
}

func trustOf(c *Config, server string) Trust {
	if s := c.Server(server); s != nil {
		return s.Trust
	}
	return "no server"
}

const signedText = `{"tools_limit": 5, "mcpServers": {"a": {"command": "x", "trust": "manual"}}}`

// TestAccessGrantingChangesWait checks that an edit by hand takes effect, except for changes that grant more access.
// These take effect after a confirmation, and both survive a restart.
func TestAccessGrantingChangesWait(t *testing.T) {
	f, p := present(t, signedText)
	f.edit1(t, `{"tools_limit": 7, /* more */ "require_mcp_auth": true, "mcpServers": {"b": {"command": "y"}, "a": {"command": "x", "trust": "auto", "disabled_tools": ["t"]}}}`)
	applied := func(c *Config) bool {
		return c.ToolsLimit == 7 && c.RequireMCPAuth && trustOf(c, "a") == TrustManual && c.Server("b") == nil && slices.Equal(c.Server("a").DisabledTools, []string{"t"})
	}
	f.holds(t, applied, "mcpServers.b", "mcpServers.a.trust")
	if f.next(t); !slices.Equal(f.next(t).Unconfirmed, []string{"mcpServers.b", "mcpServers.a.trust"}) {
		t.Error("the observer did not receive the unconfirmed keys")
	}
	f = f.restart(t, p, "")
	f.holds(t, applied, "mcpServers.b", "mcpServers.a.trust")

	p.refuse = errors.New("not now")
	if _, err := f.ConfirmFile(p.permit); !errors.Is(err, p.refuse) {
		t.Errorf("confirmed although the user refused: %v", err)
	}
	f.holds(t, applied, "mcpServers.b", "mcpServers.a.trust")
	f = f.restart(t, p, "")
	f.holds(t, applied, "mcpServers.b", "mcpServers.a.trust")

	p.refuse, p.asked = nil, nil
	was, err := f.ConfirmFile(p.permit)
	if err != nil || len(was.Differences) != 2 || len(p.asked) != 1 || strings.Join(p.asked[0], "; ") != `mcpServers.b = {"protocol":"stdio","command":"y","trust":"scan"}; mcpServers.a.trust = "auto"` {
		t.Errorf("%+v, %v, signed %q", was, err, p.asked)
	}
	all := func(c *Config) bool { return trustOf(c, "a") == TrustAuto && c.Server("b") != nil && c.ToolsLimit == 7 }
	f.holds(t, all)
	f = f.restart(t, p, "")
	f.holds(t, all)
	if _, err := f.ConfirmFile(nil); err != nil {
		t.Errorf("ConfirmFile with nothing to confirm: %v", err)
	}
}

// TestRestrictionsStay checks that neither an edit of the file nor a restart undoes a restriction.
func TestRestrictionsStay(t *testing.T) {
	f, p := present(t, `{"mcpServers": {"a": {"command": "x", "trust": "auto"}, "b": {"command": "y"}}}`)
	f.edit1(t, `{"mcpServers": {"a": {"command": "x", "trust": "scan"}}}`)
	narrow := func(c *Config) bool { return trustOf(c, "a") == TrustScan && c.Server("b") == nil }
	f.holds(t, narrow)
	wide := `{"mcpServers": {"a": {"command": "x", "trust": "auto"}, "b": {"command": "y"}}}`
	f.edit1(t, wide)
	f.holds(t, narrow, "mcpServers.a.trust", "mcpServers.b")
	f = f.restart(t, p, "")
	f.holds(t, narrow, "mcpServers.a.trust", "mcpServers.b")
	// The stored restriction is not signed. A forged restriction cannot grant more than the signed configuration does.
	narrowed := filepath.Join(f.Current().DataDir, baselineDir, narrowedFile)
	write(t, narrowed, `{"mcpServers": {"a": {"command": "evil", "trust": "auto"}, "b": {"command": "y"}}}`)
	f = f.restart(t, p, `{"mcpServers": {"a": {"command": "evil", "trust": "auto"}}}`)
	f.holds(t, func(c *Config) bool { return c.Server("a").Command == "x" }, "mcpServers.a.command")
}

// TestCommandsConfirmOnlyTheirOwnChanges checks that a command confirms exactly the access that it grants. Other
// changes in the file keep waiting, and a restriction needs no confirmation.
func TestCommandsConfirmOnlyTheirOwnChanges(t *testing.T) {
	f, p := present(t, signedText)
	f.edit1(t, `{"tools_limit": 5, "mcpServers": {"a": {"command": "x", "trust": "manual", "session": "shared"}, "agents": {"command": "z"}}}`)
	f.holds(t, func(c *Config) bool { return c.Server("agents") == nil }, "mcpServers.a.session", "mcpServers.agents")

	asked := func(name string, do func() error, want string) {
		t.Helper()
		p.asked = nil
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(p.asked) != 1 || strings.Join(p.asked[0], "; ") != want {
			t.Errorf("%s: signed %q, want %q", name, p.asked, want)
		}
		f.holds(t, func(c *Config) bool { return c.Server("a").Session == SessionAuto }, "mcpServers.a.session", "mcpServers.agents")
	}
	set := func(key, value string) func() error {
		return func() error { return f.SetServer(p.permit, "a", key, []byte(value)) }
	}
	asked("trust", set("trust", `"scan"`), `mcpServers.a.trust = "scan"`)
	asked("less trust", set("trust", `"manual"`), "")
	asked("more trust again", set("trust", `"auto"`), `mcpServers.a.trust = "auto"`)
	asked("a list", set("disabled_tools", `["t"]`), "")
	asked("no list", set("disabled_tools", `[]`), `mcpServers.a.disabled_tools = []`)
	asked("off", set("enabled", "false"), "")
	asked("on", set("enabled", "true"), `mcpServers.a.enabled = true`)
	asked("a secret", set("env", `{"TOKEN": "s3cret-value"}`), `mcpServers.a.env = {"TOKEN":"***"}`)
	asked("hints that tighten", func() error { return f.SetHintOverride(p.permit, "a", "t", []byte(`{"destructiveHint": true}`)) }, "")
	asked("hints that loosen", func() error { return f.SetHintOverride(p.permit, "a", "t", []byte(`{"readOnlyHint": true}`)) }, `mcpServers.a.hint_overrides = {"t":{"readOnlyHint":true,"destructiveHint":true}}`)
	asked("keys", func() error {
		return f.SetConfigKeys(p.permit, ETag([]byte(contents(t, f.path))), map[string]json.RawMessage{"tools_limit": []byte("9"), "mcp_management": []byte(`"off"`)}, "x")
	}, "")
	asked("a key", func() error {
		return f.SetConfigKeys(p.permit, ETag([]byte(contents(t, f.path))), map[string]json.RawMessage{"mcp_management": []byte(`"read"`)}, "x")
	}, `mcp_management = "read"`)
	asked("a server", func() error { return f.AddServers(p.permit, NamedEdit{"b", plainServer}) }, `mcpServers.b = {"protocol":"stdio","command":"y","trust":"scan"}`)
	if err := f.RemoveServer("b"); err != nil {
		t.Error(err)
	}

	p.refuse = errors.New("no")
	before := contents(t, f.path)
	if err := set("allow_private", "true")(); err == nil || contents(t, f.path) != before {
		t.Error("an invalid setting was accepted, or the file changed")
	}
	for key, value := range map[string]string{"trust": `"auto"`, "quarantined": "true"} {
		_ = f.SetServer(nil, "a", key, []byte(value)) // restricts, or makes no change
	}
	before = contents(t, f.path)
	if err := f.AddServers(p.permit, NamedEdit{"b", plainServer}); !errors.Is(err, p.refuse) || contents(t, f.path) != before || f.Current().Server("b") != nil {
		t.Errorf("a server was added without permission: %v", err)
	}
	if err := f.SetServer(nil, "a", "quarantined", nil); err == nil || contents(t, f.path) != before {
		t.Errorf("changed without a confirmation: %v", err)
	}

	// The user has seen the whole text, so all of it is confirmed.
	p.refuse, p.asked = nil, nil
	check(t, f.ReplaceText(p.permit, ETag([]byte(before)), []byte(before+"\n"), "x"))
	f.holds(t, func(c *Config) bool { return c.Server("agents") != nil && c.Server("a").Session == SessionShared })
	f = f.restart(t, p, "")
	f.holds(t, func(c *Config) bool { return c.Server("agents") != nil && c.Server("a").Env["TOKEN"] == "s3cret-value" })
}

// TestLostConfirmationGrantsNothing checks that no server is active if the confirmed text is lost, changed, unsigned,
// or replaced by a later one.
func TestLostConfirmationGrantsNothing(t *testing.T) {
	f, p := present(t, signedText)
	kept := filepath.Join(f.Current().DataDir, baselineDir, confirmedFile)
	first := contents(t, kept)
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	check(t, f.SetServer(p.permit, "a", "trust", []byte(`"scan"`)))
	second := contents(t, kept)
	closed := func(why string) {
		t.Helper()
		text := contents(t, f.path)
		f = f.restart(t, p, text)
		if got := f.Unconfirmed(); !strings.Contains(got.Why, why) {
			t.Errorf("%q, want %q", got.Why, why)
		}
		f.holds(t, func(c *Config) bool { return len(c.Servers) == 0 && c.ToolsLimit == 5 }, "mcpServers.a")
	}
	for name, c := range map[string]struct{ text, why string }{
		"changed":  {strings.Replace(second, `"x"`, `"evil"`, 1), "is not the signed one"},
		"salt":     {strings.Replace(second, `"salt":"`, `"salt":"A`, 1), "is not the signed one"},
		"number":   {strings.Replace(second, `"number":2`, `"number":3`, 1), "is not the signed one"},
		"earlier":  {first, "a later configuration was confirmed"},
		"nonsense": {"nonsense", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, kept, c.text)
			closed(c.why)
		})
	}
	check(t, os.Remove(kept))
	closed("no configuration was confirmed")
	// A confirmation made now is newer than all earlier states.
	if _, err := f.ConfirmFile(p.permit); err != nil {
		t.Fatal(err)
	}
	f.holds(t, func(c *Config) bool { return trustOf(c, "a") == TrustScan })
	for _, earlier := range []string{first, second} {
		write(t, kept, earlier)
		closed("a later configuration was confirmed")
	}
	if f := f.restart(t, newPerson(), ""); f.Unconfirmed().Why == "" {
		t.Error("an unsigned configuration is accepted as confirmed")
	}
	// The number belongs to one instance.
	if err := f.SetVerifier(p, "there"); err != nil || f.Unconfirmed().Why == "" {
		t.Errorf("a configuration that was signed for another instance is accepted: %v", err)
	}
}

// TestRemovingPresenceIsHeld checks that removing the key from the file does not turn presence off, and that adding
// the key alone allows nothing.
func TestRemovingPresenceIsHeld(t *testing.T) {
	f, p := present(t, `{"presence": "passphrase", "mcpServers": {"a": {"command": "x"}}}`)
	for _, text := range []string{`{"mcpServers": {"a": {"command": "x"}}}`, `{"presence": "none", "mcpServers": {"a": {"command": "x"}}}`, `{"presence": "passkey", "mcpServers": {"a": {"command": "x"}}}`} {
		f.edit1(t, text)
		f.holds(t, func(c *Config) bool { return c.Presence == PresencePassphrase && c.Server("a") != nil }, "presence")
		f = f.restart(t, p, "")
		f.holds(t, func(c *Config) bool { return c.Presence == PresencePassphrase && c.Server("a") != nil }, "presence")
	}
	p.on = false
	other := f.restart(t, p, `{"presence": "passphrase", "mcpServers": {"b": {"command": "x"}}}`)
	other.holds(t, func(c *Config) bool { return c.Server("b") == nil }, "mcpServers.b")
}

// TestWithoutPresenceNothingIsHeld checks that without presence no change is held and no text is stored, also after
// presence is turned off.
func TestWithoutPresenceNothingIsHeld(t *testing.T) {
	f := open(t, signedText, inDir(t.TempDir()))
	p := newPerson()
	p.on = false
	check(t, f.SetVerifier(p, ""))
	f.edit1(t, `{"mcpServers": {"a": {"command": "y", "trust": "auto"}}}`)
	f.holds(t, func(c *Config) bool { return c.Server("a").Command == "y" })
	check(t, f.AddServers(p.permit, NamedEdit{"b", plainServer}))
	if len(p.asked) != 1 || len(p.asked[0]) != 0 {
		t.Errorf("a confirmation with claims was requested: %q", p.asked)
	}
	if _, err := os.Stat(filepath.Join(f.Current().DataDir, baselineDir)); err == nil {
		t.Error("a confirmed configuration is stored")
	}

	g, p := present(t, signedText)
	g.edit1(t, `{"mcpServers": {"a": {"command": "y"}}}`)
	g.holds(t, func(c *Config) bool { return c.Server("a").Command == "x" }, "mcpServers.a.command", "mcpServers.a.trust")
	p.on = false
	check(t, g.SetVerifier(p, "here"))
	g.holds(t, func(c *Config) bool { return c.Server("a").Command == "y" })
	if _, err := os.Stat(filepath.Join(g.Current().DataDir, baselineDir, confirmedFile)); err == nil {
		t.Error("the former confirmed configuration is still stored")
	}
	p.on = true
	check(t, g.SetVerifier(p, "here"))
	g.holds(t, func(c *Config) bool { return len(c.Servers) == 0 }, "mcpServers.a")
}

// TestConfirmationBeforeVerification checks that the stored confirmation applies unchanged until signatures can be
// verified. No server is started before that.
func TestConfirmationBeforeVerification(t *testing.T) {
	f, _ := present(t, signedText)
	dir := f.Current().DataDir
	g := open(t, strings.Replace(signedText, "manual", "auto", 1), inDir(dir))
	g.holds(t, func(c *Config) bool { return trustOf(c, "a") == TrustManual }, "mcpServers.a.trust")
	if err := g.SetServer(nil, "a", "trust", []byte(`"scan"`)); err == nil {
		t.Error("trust was changed without a confirmation")
	}
	check(t, os.RemoveAll(filepath.Join(dir, baselineDir)))
	g = open(t, `{"presence": "passkey", "mcpServers": {"a": {"command": "x"}}}`, inDir(dir))
	g.holds(t, func(c *Config) bool { return len(c.Servers) == 0 }, "mcpServers.a")
}

// TestSignatureBeforeTheFile checks that neither the signature nor the file is lost when the process stops between
// signing and writing the file.
func TestSignatureBeforeTheFile(t *testing.T) {
	f, p := present(t, signedText)
	dir := filepath.Join(f.Current().DataDir, baselineDir)
	before := contents(t, filepath.Join(dir, confirmedFile))
	f.edit1(t, strings.Replace(signedText, "manual", "auto", 1))
	if _, err := f.ConfirmFile(p.permit); err != nil {
		t.Fatal(err)
	}
	check(t, os.Rename(filepath.Join(dir, confirmedFile), filepath.Join(dir, nextFile)))
	write(t, filepath.Join(dir, confirmedFile), before)
	f = f.restart(t, p, "")
	f.holds(t, func(c *Config) bool { return trustOf(c, "a") == TrustAuto })
	// A configuration that was prepared but never signed does not count, and does not replace the signed one.
	f.edit1(t, strings.Replace(signedText, `"x"`, `"z"`, 1))
	p.refuse = errors.New("no")
	_, _ = f.ConfirmFile(p.permit)
	f = f.restart(t, p, "")
	f.holds(t, func(c *Config) bool { return f.Current().Server("a").Command == "x" }, "mcpServers.a.command")
}

// TestPreviewThenSign checks that a caller can request beforehand which access a change grants, and sign those claims
// together with others before the change is made.
func TestPreviewThenSign(t *testing.T) {
	f, p := present(t, signedText)
	for _, value := range []string{`"scan"`, `"auto"`} {
		var tried []Claim
		stop := errors.New("only tried")
		err := f.SetServer(func(claims ...Claim) error { tried = claims; return stop }, "a", "trust", []byte(value))
		if !errors.Is(err, stop) || f.Current().Server("a").Trust == TrustAuto {
			t.Fatal(err)
		}
		p.sign(tried)
		err = f.SetServer(func(claims ...Claim) error {
			if fmt.Sprint(claims) != fmt.Sprint(tried) {
				return fmt.Errorf("got claims %q, want the signed claims %q", claims, tried)
			}
			return nil
		}, "a", "trust", []byte(value))
		check(t, err)
	}
	f = f.restart(t, p, "")
	f.holds(t, func(c *Config) bool { return trustOf(c, "a") == TrustAuto })
}

// TestVerifyKeepsARefusedFileRefused checks that SetVerifier does not make a rejected file valid.
func TestVerifyKeepsARefusedFileRefused(t *testing.T) {
	f, p := present(t, signedText)
	inForce := f.AppliedText().ETag()
	write(t, f.path, `{"nonsense": 1}`)
	if f.Reload() == nil {
		t.Fatal("an invalid file was accepted")
	}
	check(t, f.SetVerifier(p, "here"))
	if f.LastError() == nil || f.AppliedText().ETag() != inForce || f.Current().Server("a") == nil {
		t.Errorf("%v", f.LastError())
	}
	if _, err := f.ConfirmFile(p.permit); err == nil {
		t.Error("a rejected file was confirmed")
	}
}

// TestRepairBeforeConfirmation checks that the warning tells the user how to make signing possible, instead of
// requesting a confirmation that cannot be signed.
func TestRepairBeforeConfirmation(t *testing.T) {
	f, p := present(t, signedText)
	p.signed = map[string]bool{}
	p.void, p.remedy = "The configuration requires presence, but no anchor is set.", "Set one: `mcpproxy presence set passphrase`."
	check(t, f.SetVerifier(p, "here"))
	said := strings.Join(f.Warnings(), "\n")
	for _, want := range []string{
		"configuration that grants more access is not applied: the configuration requires presence, but no anchor is set; set one: `mcpproxy presence set passphrase`",
		"wait for confirmation: mcpServers.a",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("missing text:\n%s\ngot:\n%s", want, said)
		}
	}
	if strings.Contains(said, "config confirm") {
		t.Error(said)
	}
	p.void, p.remedy = "", ""
	check(t, f.SetVerifier(p, "here"))
	if said := strings.Join(f.Warnings(), "\n"); !strings.Contains(said, "config confirm") {
		t.Error(said)
	}
}
