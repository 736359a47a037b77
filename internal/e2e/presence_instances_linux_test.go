package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/pgtest"
)

// sharedPresence is a group of instances that share a database and an anchor.
type sharedPresence struct {
	t        *testing.T
	server   *pgtest.Server
	config   string
	database string // name of the database
	world    *counted
}

// calls returns a function that fails unless a tool is callable at an instance, or not callable, as want requires.
func (s *sharedPresence) calls(d *daemon, name string, want bool) func() error {
	return func() error {
		if r := d.stateless().call("call_tool_read", fmt.Sprintf(`{"name":"s:%s","args":{}}`, name)); r.IsError == want {
			return fmt.Errorf("a call of %s at %s is answered with %s", name, d.address, r.text())
		}
		return nil
	}
}

// void returns a function that fails unless an instance gives this reason why no signed decision is valid. "" means
// they are valid.
func (s *sharedPresence) void(d *daemon, why string) func() error {
	return func() error {
		var v struct{ Void string }
		if _, body := d.rest("GET", "/presence", ""); json.Unmarshal(body, &v) != nil || (why == "") != (v.Void == "") || !strings.Contains(v.Void, why) {
			return fmt.Errorf("presence: %s", body)
		}
		return nil
	}
}

func (s *sharedPresence) sql(statements string) {
	s.t.Helper()
	if out, err := s.server.QueryIn(s.database, statements); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// typed runs a command as the user does, in a terminal.
func (s *sharedPresence) typed(d *daemon, args ...string) (out string) {
	s.t.Helper()
	d.t = s.t
	code, out, screen := d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, args...)
	if code != 0 {
		s.t.Fatalf("%q: %d\n%s\n%s", args, code, out, screen)
	}
	return out + screen
}

// named requires that each of these doctor checks at an instance reports a problem that contains what.
func (s *sharedPresence) named(d *daemon, codes, what string) {
	s.t.Helper()
	_, r := (&patient{daemon: d}).report("--only", codes)
	if len(r.Checks) == 0 || slices.ContainsFunc(r.Checks, func(c doctor.CheckResult) bool {
		return c.State != doctor.Bad || !strings.Contains(c.What+c.Subject, what)
	}) {
		s.t.Errorf("%s: the doctor reports %+v", d.address, r.Checks)
	}
}

// TestInstancesShareTheAnchor: a statement that is signed at one instance is valid at every instance where the anchor
// was proven, both running ones and ones that start later. An unsigned decision is valid at no instance, and the status
// of each names it. A reset and its cancellation reach all instances.
func TestInstancesShareTheAnchor(t *testing.T) {
	t.Parallel()
	world := &counted{}
	for _, name := range []string{"look", "more", "extra"} {
		world.add(name, `{"readOnlyHint":true}`, `{"type":"object"}`)
	}
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	server := pgtest.StartServer(t)
	address := server.CreateDatabase(t)
	s := &sharedPresence{t: t, server: server, database: "d1", world: world,
		config: fmt.Sprintf(`{"database":%q,"mcpServers":{"s":{"url":%q,"trust":"manual"}}}`, address, u.URL)}
	a, b := startDaemon(t, s.config), startDaemon(t, s.config)
	for _, d := range []*daemon{a, b} {
		awaitReady(d)
		eventually(t, "the tools are listed", func() error {
			if n := len(d.lockedTools()); n != 3 {
				return fmt.Errorf("%d are locked", n)
			}
			return nil
		})
	}
	if code, _, stderr := a.cli("tools", "approve", "s:look", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, "the approval is valid at the other instance", s.calls(b, "look", true))

	code, out, screen := a.atTerminal([]prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}, "presence", "set", "passphrase")
	if code != 0 {
		t.Fatal(out, screen)
	}
	eventually(t, "earlier decisions are valid", s.calls(a, "look", true))
	eventually(t, "an instance where the anchor was not proven", s.calls(b, "look", false))
	c := startDaemon(t, s.config)
	awaitReady(c)
	for _, d := range []*daemon{b, c} {
		if err := s.void(d, "missing")(); err != nil {
			t.Error(err)
		}
		if err := s.calls(d, "look", false)(); err != nil {
			t.Error(err)
		}
		if d == c {
			s.named(d, "D709,D307", "missing")
		}
		if out := s.typed(d, "presence", "join"); !strings.Contains(out, "config confirm") {
			t.Errorf("the pending change of the file is not reported: %s", out)
		}
		s.typed(d, "config", "confirm")
		eventually(t, "decisions signed at the first instance are valid", s.calls(d, "look", true))
	}

	s.typed(a, "tools", "approve", "s:more", "--yes")
	eventually(t, "a decision signed at one instance is valid at another", s.calls(b, "more", true))
	eventually(t, "it is valid at an instance that starts later", s.calls(c, "more", true))

	// Another program writes a row, an anchor and a reset into the database.
	parsed, err := tool.ParseDefinition("s", []byte(world.tool[2].Definition))
	if err != nil {
		t.Fatal(err)
	}
	print := parsed.Fingerprint()
	s.sql(fmt.Sprintf(`INSERT INTO mcpproxy.approval (server, kind, tool, approved, hints, approved_by, approved_at) VALUES ('s', 'tool', 'extra', '\x%x', '{"readOnlyHint":true}', 'admin', 1764000000000000)
		ON CONFLICT (server, kind, tool) DO UPDATE SET approved = excluded.approved, hints = excluded.hints, approved_by = excluded.approved_by, approved_at = excluded.approved_at`, print[:]))
	s.named(a, "D712", "extra")
	s.named(b, "D712", "extra")
	for _, d := range []*daemon{a, b, c} {
		if err := s.calls(d, "extra", false)(); err != nil {
			t.Error(err)
		}
	}
	s.sql(`NOTIFY mcpproxy, 'server true s'`)
	own, _, err := presence.NewPassphraseAnchor([]byte("one of my own, too"), presence.Digest{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := own.StoredJSON()
	s.sql(fmt.Sprintf(`CREATE TABLE kept AS TABLE mcpproxy.presence_anchor; UPDATE mcpproxy.presence_anchor SET anchor = '\x%x'; NOTIFY mcpproxy, 'presence'`, text))
	for _, d := range []*daemon{a, b, c} {
		eventually(t, "another anchor makes decisions invalid", s.calls(d, "look", false))
		if status, body := d.rest("POST", "/presence/join", ""); status == http.StatusOK {
			t.Errorf("another anchor is accepted: %s", body)
		}
	}
	s.named(b, "D709", "differs")
	s.sql(`DELETE FROM mcpproxy.presence_anchor; INSERT INTO mcpproxy.presence_anchor SELECT * FROM kept; NOTIFY mcpproxy, 'presence'`)
	for _, d := range []*daemon{a, b, c} {
		eventually(t, "decisions are valid with the original anchor", s.calls(d, "look", true))
		if err := s.calls(d, "extra", false)(); err != nil {
			t.Error(err)
		}
	}

	if code, _, stderr := a.cli("presence", "reset", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, "a reset reaches the other instance", s.calls(b, "look", false))
	for _, d := range []*daemon{a, b, c} {
		if err := s.void(d, "Presence was reset. Until")(); err != nil {
			t.Error(err)
		}
		if status, body := d.rest("POST", "/tokens", `{"name":"mine"}`); status != http.StatusForbidden || strings.Contains(string(body), `"statement"`) {
			t.Errorf("a decision can be permitted: %d %s", status, body)
		}
	}
	// An instance that starts during the reset also reports it. A user can cancel it at any instance.
	c.stop()
	c.start()
	awaitReady(c)
	if err := s.void(c, "Presence was reset. Until")(); err != nil {
		t.Error(err)
	}
	s.typed(b, "presence", "reset", "--cancel")
	for _, d := range []*daemon{a, b, c} {
		eventually(t, "the reset is cancelled", s.calls(d, "more", true))
		if err := s.void(d, "")(); err != nil {
			t.Error(err)
		}
	}
	if got := world.all(); slices.Contains(got, "extra") {
		t.Errorf("extra ran: %q", got)
	}
}
