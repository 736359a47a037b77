package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream"
)

var update = flag.Bool("update", false, "write the golden files")

// zoo returns a test environment with one tool for each status and one callable tool. All match the query "zebra".
func zoo(t *testing.T, locked bool) *adminWorld {
	open := upstream.State{Name: "open", Phase: upstream.Ready}
	one := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"Feed a zebra: %s.","annotations":{"readOnlyHint":true}}`, name, name)
	}
	w := newAdminWorld(t, func(c *config.Config) {
		c.Servers = nil
		names := []string{"open"}
		if locked {
			names = append(names, "off", "held", "unreviewed")
		}
		for _, name := range names {
			c.Servers = append(c.Servers, config.Server{Name: name, Protocol: "stdio", Launch: config.Launch{Command: name}, Enabled: true, Trust: config.TrustAuto})
		}
		if locked {
			c.Servers[0].DisabledTools = []string{"denied_*"}
			c.Servers[3].Quarantined = true // none of its definitions was ever approved
		}
	})
	w.Catalog.StateChanged(open)
	if !locked {
		w.SetToolsOn("open", one("open_feed"), one("changing_feed"))
		w.SetToolsOn("open", one("open_feed"))
		return w
	}
	ctx := context.Background()
	w.SetToolsOn("open", one("open_feed"), one("denied_feed"), one("switched_feed"), one("changing_feed"))
	w.SetToolsOn("off", one("off_feed"))
	w.SetToolsOn("held", one("held_feed"))
	w.SetToolsOn("unreviewed", one("unreviewed_feed"))
	if _, err := w.gateway.DisableTool(ctx, adminPerson, ToolRef{Server: "open", Tool: "switched_feed"}); err != nil {
		t.Fatal(err)
	}
	w.SetToolsOn("open", one("open_feed"), one("denied_feed"), one("switched_feed"),
		`{"name":"changing_feed","description":"Feed a zebra CANARY.","annotations":{"readOnlyHint":true,"destructiveHint":false}}`)
	if _, err := w.gateway.DisableServer(ctx, adminPerson, ServerRef{Name: "off"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gateway.QuarantineServer(ctx, adminPerson, ServerRef{Name: "held"}); err != nil {
		t.Fatal(err)
	}
	return w
}

var anyScore = regexp.MustCompile(`"score": [0-9.]+`)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", "\t"); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	said := anyScore.ReplaceAll(indented.Bytes(), []byte(`"score": 1`)) // scores are tested in package search
	if *update {
		if err := os.WriteFile(path, said, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, said) {
		t.Errorf("%s is out of date (%v): run go test ./internal/ops -update; got:\n%s", path, err, said)
	}
}

// inOrder returns the answer with the locked tools sorted by name, because their ranking is tested in package search.
func inOrder(t *testing.T, raw []byte) []byte {
	t.Helper()
	type entry struct {
		Name        string `json:"name"`
		Server      string `json:"server"`
		Description string `json:"description"`
		Status      string `json:"status"`
	}
	var locked struct{ Disabled []entry }
	if err := json.Unmarshal(raw, &locked); err != nil {
		t.Fatal(err)
	}
	before, rest, _ := bytes.Cut(raw, []byte(`"disabled":`))
	_, after, _ := bytes.Cut(rest, []byte(`,"remediation":`))
	all := locked.Disabled
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.Server+":"+a.Name, b.Server+":"+b.Name) })
	sorted, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(before, []byte(`"disabled":`), sorted, []byte(`,"remediation":`), after)
}

// Without include_disabled, the answer is byte for byte the same as without the locked tools. With it, the locked tools
// follow the others, each with its reason.
func TestIncludeDisabled(t *testing.T) {
	with, without := zoo(t, true), zoo(t, false)
	ask := func(w *adminWorld, query string, disabled bool) []byte {
		raw, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: query, IncludeDisabled: disabled, Caller: adminAgent})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	plain := ask(with, "feed a zebra", false)
	if other := ask(without, "feed a zebra", false); !bytes.Equal(plain, other) {
		t.Errorf("the locked tools are visible:\n%s\n%s", plain, other)
	}
	golden(t, "retrieve.json", plain)
	all := ask(with, "feed a zebra", true)
	golden(t, "retrieve_include_disabled.json", inOrder(t, all))
	if rest, found := bytes.CutPrefix(all, bytes.TrimSuffix(plain, []byte("}"))); !found || !bytes.HasPrefix(rest, []byte(`,"disabled":[`)) {
		t.Errorf("the callable tools are not first or have changed:\n%s", all)
	}
	for _, never := range []string{"CANARY", "unreviewed", "held_feed."} {
		if bytes.Contains(all, []byte(never)) {
			t.Errorf("%q was never approved, but is in %s", never, all)
		}
	}
	golden(t, "retrieve_notice.json", ask(with, "switched", false))
	if got := ask(with, "unreviewed", false); !bytes.Equal(got, ask(without, "unreviewed", false)) {
		t.Errorf("a notice mentions tools that must stay hidden: %s", got)
	}
	if a, b := ask(without, "feed a zebra", true), ask(without, "feed a zebra", false); !bytes.Equal(a, b) {
		t.Errorf("include_disabled changes the answer, although no tool is locked: %s", a)
	}
}

// Search, counts, views and refusals report the same status.
func TestViewsAgreeOnStatus(t *testing.T) {
	w := zoo(t, true)
	want := map[string]string{
		"open:open_feed": "callable", "open:denied_feed": "disabled_by_config", "open:switched_feed": "disabled_by_user",
		"open:changing_feed": "pending_approval", "off:off_feed": "server_disabled", "held:held_feed": "server_quarantined",
		"unreviewed:unreviewed_feed": "server_quarantined",
	}
	said := map[string]string{}
	for _, d := range w.retrieve(RetrieveRequest{Query: "feed a zebra", IncludeDisabled: true}).Disabled {
		said[d.Name] = d.Status
	}
	for id, status := range want {
		if got := w.status(id); got != status {
			t.Errorf("%s is %s, want %s", id, got, status)
		}
		_, p := w.call(policy.CallToolRead, id, `{}`)
		if status == "callable" {
			if p != nil {
				t.Errorf("the refusal for %s: %v", id, p)
			}
			continue
		}
		if p == nil || p.Code != problem.ToolLocked || p.Detail("status") != status {
			t.Errorf("the call of %s: %v", id, p)
		}
		if id != "unreviewed:unreviewed_feed" && said[id] != status {
			t.Errorf("search reports %q for %s", said[id], id)
		}
	}
	counts := map[string]Counts{}
	for _, s := range w.servers() {
		if s.Tools != nil {
			counts[s.Name] = *s.Tools
		}
	}
	wantCounts := map[string]Counts{
		"open": {policy.Callable: 1, policy.DisabledByConfig: 1, policy.DisabledByUser: 1, policy.PendingApproval: 1}, "off": {policy.ServerDisabled: 1},
		"held": {policy.ServerQuarantined: 1}, "unreviewed": {policy.ServerQuarantined: 1},
	}
	for name, c := range wantCounts {
		if counts[name] != c {
			t.Errorf("the counts of %s are %+v", name, counts[name])
		}
	}
}

// If the approvals cannot be read, no tool can be called and none is shown as approved.
func TestUnreadableApprovalsRefuse(t *testing.T) {
	w := newAdminWorld(t, nil)
	book := approval.NewBook(&w.Approvals, nil) // it is never loaded
	w.Catalog = catalog.New(catalog.Options{Servers: w.Config().Servers, Approvals: book, Logger: catalogtest.Logger})
	w.renew(book)
	w.SetToolsOn("s", adminReadsTool)
	if _, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`); p == nil || p.Detail("status") != "disabled_unknown" {
		t.Errorf("the call: %v", p)
	}
	a := w.retrieve(RetrieveRequest{Query: "read a thing", IncludeDisabled: true})
	if len(a.Disabled) != 1 || a.Disabled[0].Status != "disabled_unknown" || a.Disabled[0].Description != "" {
		t.Errorf("search reports %+v", a.Disabled)
	}
}

// TestLockedBeforeItWasListed checks the refusal of a call to a disabled or quarantined server that has never listed
// its tools. It names that reason and does not advise to retry.
func TestLockedBeforeItWasListed(t *testing.T) {
	w := newAdminWorld(t, func(c *config.Config) {
		c.Servers = []config.Server{
			{Name: "off", Protocol: "stdio", Launch: config.Launch{Command: "off"}},
			{Name: "held", Protocol: "stdio", Launch: config.Launch{Command: "held"}, Enabled: true, Quarantined: true},
			{Name: "new", Protocol: "stdio", Launch: config.Launch{Command: "new"}, Enabled: true},
		}
	})
	for server, want := range map[string]problem.Code{"off": problem.ToolLocked, "held": problem.ToolLocked, "new": problem.ServerUnavailable} {
		_, err := w.gateway.Call(t.Context(), gate.LaneCall{CallTool: policy.CallToolRead, Name: server + ":any", Caller: adminAgent})
		p := problem.From(err)
		if p == nil || p.Code != want {
			t.Errorf("%s: %v, want %s", server, err, want)
			continue
		}
		if want == problem.ToolLocked && (!strings.Contains(p.Message, "server_") || strings.Contains(p.Hint, "in a moment")) {
			t.Errorf("%s: %s %s", server, p.Message, p.Hint)
		}
	}
}
