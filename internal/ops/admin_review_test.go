package ops

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// reviewing returns a test environment without servers. running returns the names of the servers that may be started.
func reviewing(t *testing.T) (w *adminWorld, running func() []string) {
	w = newAdminWorld(t, func(c *config.Config) { c.Servers = nil; c.MCPManagement = config.ManagePropose })
	return w, func() (may []string) {
		for _, s := range w.Config().Servers {
			if catalog.MayStartServer(s, w.Book.ServerView(s.Name)) {
				may = append(may, s.Name)
			}
		}
		return may
	}
}

var proposed1 = AddServerRequest{Name: "new", Launch: config.Launch{Command: "sh", Args: []string{"-c", "touch x"}, Env: map[string]string{"TOKEN": "abc"}}, Trust: "auto"}

func (w *adminWorld) review(name string) ServerReview {
	w.T.Helper()
	r, err := w.gateway.ServerReview(context.Background(), Caller{}, ServerRef{Name: name})
	if err != nil {
		w.T.Fatal(err)
	}
	return r
}

func (w *adminWorld) approveServer(name string) ServerReview {
	w.T.Helper()
	r, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: name}, SeenFingerprint: SeenFingerprint{Fingerprint: w.review(name).Fingerprint}})
	if err != nil {
		w.T.Fatal(err)
	}
	return r
}

// TestUnpinnedApprovalTellsWhy: a user who approves a launch whose version cannot be pinned is told so. A command that starts no
// package has nothing to pin.
func TestUnpinnedApprovalTellsWhy(t *testing.T) {
	for command, want := range map[string]string{"npx": "does not know the flag --strange", "sh": ""} {
		w, _ := reviewing(t)
		NewVersionOperations(w.gateway.Admin, nil)
		if _, err := w.gateway.AddServer(context.Background(), adminAgent, AddServerRequest{Name: "new", Launch: config.Launch{Command: command, Args: []string{"--strange", "x"}}}); err != nil {
			t.Fatal(err)
		}
		r := w.approveServer("new")
		if r.Launch.Pin != "" || (r.Notice == "") != (want == "") || !strings.Contains(r.Notice, want) {
			t.Errorf("%s: pin %q, notice %q", command, r.Launch.Pin, r.Notice)
		}
	}
}

// A server that an agent adds is a proposal. A user reviews it in two stages.
func TestProposalReviewHasTwoStages(t *testing.T) {
	w, running := reviewing(t)
	v, err := w.gateway.AddServer(context.Background(), adminAgent, proposed1)
	if err != nil || !v.Quarantined || v.Stage != StageLaunch || v.ProposedBy != "agent" || v.State != string(upstream.Stopped) {
		t.Fatalf("proposed: %+v, %v", v, err)
	}
	if len(w.Config().Servers) > 0 || len(running()) > 0 {
		t.Fatal("the agent has changed the configuration")
	}
	if all := w.servers(); len(all) != 1 || all[0].Name != "new" {
		t.Errorf("the servers are %+v", all)
	}
	r := w.review("new")
	if r.Stage != StageLaunch || r.Launch.Command != "sh" || !slices.Equal(r.Launch.Args, proposed1.Args) || !slices.Equal(r.Launch.Env, []string{"TOKEN"}) || r.ProposedEnv["TOKEN"] != "abc" || r.ProposedBy != "agent" {
		t.Errorf("the review: %+v", r)
	}
	waiting, _ := w.gateway.PendingApprovals(context.Background(), Caller{}, PendingApprovalsQuery{})
	if len(waiting.Servers) != 1 || waiting.Servers[0].Fingerprint != r.Fingerprint {
		t.Errorf("waiting: %+v", waiting)
	}
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: strings.Repeat("0", 64)}}); problem.From(err).Code != problem.Conflict || len(w.Config().Servers) > 0 {
		t.Errorf("another launch: %v", err)
	}

	// After the approval of the launch, the server is in the file and runs for the review.
	r = w.approveServer("new")
	if r.Stage != StageDefinitions || r.LaunchApprovedBy != "admin" || !w.Config().Servers[0].Quarantined || w.Config().Servers[0].Trust != config.TrustScan {
		t.Errorf("the launch is approved: %+v, %v", r, w.Config().Servers)
	}
	if !slices.Equal(running(), []string{"new"}) || len(w.Book.ProposedServers()) > 0 {
		t.Errorf("running are %v, proposals %v", running(), w.Book.ProposedServers())
	}
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: r.Fingerprint}}); problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("before it listed its tools: %v", err)
	}
	w.Catalog.StateChanged(upstream.State{Name: "new", Phase: upstream.Ready, Instructions: "Be nice."})
	w.SetToolsOn("new", adminReadsTool, adminDestroysTool)
	if s := w.status("new:reads"); s != "server_quarantined" {
		t.Errorf("during the review: %s", s)
	}
	seen := w.review("new")
	if len(seen.Tools) != 2 || seen.Tools[0].Reason != approval.New || seen.Instructions != "Be nice." || seen.Fingerprint == r.Fingerprint {
		t.Errorf("the definitions: %+v", seen)
	}

	// Any change after the user has seen the review causes a conflict.
	w.Catalog.StateChanged(upstream.State{Name: "new", Phase: upstream.Ready, Instructions: "Be nasty."})
	w.Catalog.Publish()
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: seen.Fingerprint}}); problem.From(err).Code != problem.Conflict {
		t.Errorf("other instructions: %v", err)
	}
	w.Catalog.StateChanged(upstream.State{Name: "new", Phase: upstream.Ready, Instructions: "Be nice."})
	w.SetToolsOn("new", strings.Replace(adminReadsTool, "Read", "Write", 1), adminDestroysTool)
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: seen.Fingerprint}}); problem.From(err).Code != problem.Conflict {
		t.Errorf("another definition: %v", err)
	}
	w.SetToolsOn("new", adminReadsTool, adminDestroysTool)
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: seen.Fingerprint}}); err != nil {
		t.Fatal(err)
	}
	if s := w.status("new:reads"); s != "callable" || w.Config().Servers[0].Quarantined {
		t.Errorf("approved: %s, %v", s, w.Config().Servers[0])
	}
	if _, p := w.call(policy.CallToolRead, "new:reads", `{"n":1}`); p != nil {
		t.Errorf("the call: %v", p)
	}
}

// A changed launch restarts the review.
func TestChangedLaunchRestartsTheReview(t *testing.T) {
	w, running := reviewing(t)
	if _, err := w.gateway.AddServer(context.Background(), adminAgent, proposed1); err != nil {
		t.Fatal(err)
	}
	w.approveServer("new")
	w.SetToolsOn("new", adminReadsTool)
	w.approveServer("new")
	if err := w.Edit(func(c *config.Config) error { c.Servers[0].Args = []string{"-c", "rm x"}; return nil }); err != nil {
		t.Fatal(err)
	}
	if s := w.status("new:reads"); s != "server_quarantined" || len(running()) > 0 || w.review("new").Stage != StageLaunch {
		t.Errorf("after a change of the launch: %s, running %v", s, running())
	}
	if r := w.approveServer("new"); r.Stage != StageDefinitions || !w.Config().Servers[0].Quarantined {
		t.Errorf("after the launch was approved: %+v", r)
	}
	if s := w.status("new:reads"); s != "server_quarantined" {
		t.Errorf("during the review: %s", s)
	}
	w.SetToolsOn("new", adminReadsTool)
	if r := w.approveServer("new"); r.Stage != StageApproved || w.status("new:reads") != "callable" {
		t.Errorf("approved: %+v", r)
	}
}

// Definitions that were listed before the approval of the launch cannot be approved, because they come from another
// command.
func TestDefinitionsOfAnotherLaunchAreNotApproved(t *testing.T) {
	w, _ := reviewing(t)
	mine := AddServerRequest{Name: "mine", Launch: config.Launch{Command: "x"}, Trust: "auto", Quarantined: true}
	if _, err := w.gateway.AddServer(context.Background(), adminPerson, mine); err != nil {
		t.Fatal(err)
	}
	w.approveServer("mine")
	w.SetToolsOn("mine", adminReadsTool)
	w.approveServer("mine")
	if err := w.Edit(func(c *config.Config) error { c.Servers[0].Command = "y"; return nil }); err != nil {
		t.Fatal(err)
	}
	w.approveServer("mine")
	r := w.review("mine")
	if r.Stage != StageDefinitions || r.Listed {
		t.Errorf("before it listed its tools: %s, listed %v", r.Stage, r.Listed)
	}
	if _, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "mine"}, SeenFingerprint: SeenFingerprint{Fingerprint: r.Fingerprint}}); problem.From(err) == nil || problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("the definitions of another command: %v", err)
	}
	w.SetToolsOn("mine", adminReadsTool)
	w.approveServer("mine")
	if s := w.status("mine:reads"); s != "callable" {
		t.Errorf("approved: %s", s)
	}
}

// A server that a user writes to the file starts at once. A quarantine stops it and requires a review.
func TestQuarantine(t *testing.T) {
	w, running := reviewing(t)
	if _, err := w.gateway.AddServer(context.Background(), adminPerson, AddServerRequest{Name: "mine", Launch: config.Launch{Command: "x"}}); err != nil {
		t.Fatal(err)
	}
	w.SetToolsOn("mine", adminReadsTool)
	if s := w.status("mine:reads"); s != "callable" || !slices.Equal(running(), []string{"mine"}) {
		t.Fatalf("added by a user: %s, %v", s, running())
	}
	if v, err := w.gateway.QuarantineServer(context.Background(), adminPerson, ServerRef{Name: "mine"}); err != nil || !v.Quarantined || v.Stage != StageLaunch {
		t.Errorf("quarantined: %+v, %v", v, err)
	}
	if s := w.status("mine:reads"); s != "server_quarantined" || len(running()) > 0 {
		t.Errorf("quarantined: %s, %v", s, running())
	}
	if _, err := w.gateway.RestartServer(context.Background(), adminPerson, ServerRef{Name: "mine"}); problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("restarted: %v", err)
	}
	w.approveServer("mine")
	w.SetToolsOn("mine", adminReadsTool)
	if _, err := w.gateway.RestartServer(context.Background(), adminAgent, ServerRef{Name: "mine"}); problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("restarted by an agent during the review: %v", err)
	}
	w.approveServer("mine")
	if s := w.status("mine:reads"); s != "callable" {
		t.Errorf("approved again: %s", s)
	}
}

// Approving a server that is not quarantined approves all waiting definitions except blocked ones.
func TestApproveAllPending(t *testing.T) {
	w := newAdminWorld(t, trust(config.TrustManual), adminReadsTool, adminDestroysTool)
	id, f := w.fingerprint("s:destroys")
	if _, err := w.gateway.BlockTool(context.Background(), adminPerson, ToolDecision{ToolRef: ToolRef(id), SeenFingerprint: SeenFingerprint{Fingerprint: f}}); err != nil {
		t.Fatal(err)
	}
	w.approveServer("s")
	if a, b := w.status("s:reads"), w.status("s:destroys"); a != "callable" || b != "blocked" {
		t.Errorf("waiting %s, blocked %s", a, b)
	}
	// The user changes the launch in the file. It needs no review, because the launch was never reviewed.
	if err := w.Edit(func(c *config.Config) error { c.Servers[0].Command = "other"; return nil }); err != nil {
		t.Fatal(err)
	}
	if s := w.status("s:reads"); s != "callable" {
		t.Errorf("after the user changed the launch: %s", s)
	}
}

func TestProposalsAreChecked(t *testing.T) {
	w, _ := reviewing(t)
	ctx := context.Background()
	if _, err := w.gateway.AddServer(ctx, adminAgent, proposed1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gateway.AddServer(ctx, adminPerson, AddServerRequest{Name: "mine", Launch: config.Launch{URL: "https://example.com/mcp"}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server AddServerRequest
		code   problem.Code
	}{
		"proposed already":   {AddServerRequest{Name: "NEW", Launch: config.Launch{Command: "x"}}, problem.Conflict},
		"configured already": {AddServerRequest{Name: "Mine", Launch: config.Launch{Command: "x"}}, problem.Conflict},
		"no name":            {AddServerRequest{Launch: config.Launch{Command: "x"}}, problem.InvalidParameter},
		"a bad name":         {AddServerRequest{Name: "a:b", Launch: config.Launch{Command: "x"}}, problem.InvalidParameter},
		"nothing to start":   {AddServerRequest{Name: "a"}, problem.InvalidParameter},
		"two ways":           {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", URL: "https://example.com"}}, problem.InvalidParameter},
		"no address":         {AddServerRequest{Name: "a", Launch: config.Launch{URL: "file:///etc/passwd"}}, problem.InvalidParameter},
		"too long":           {AddServerRequest{Name: "a", Launch: config.Launch{Command: strings.Repeat("x", maxServerText+1)}}, problem.InvalidParameter},
		"too many":           {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", Args: make([]string, maxServerParts+1)}}, problem.InvalidParameter},
		"a NUL":              {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x\x00"}}, problem.InvalidParameter},
		"no variable":        {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", Env: map[string]string{"": "v"}}}, problem.InvalidParameter},
		"an assignment":      {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", Env: map[string]string{"A=B": "v"}}}, problem.InvalidParameter},
		"two assignments":    {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", Env: map[string]string{"A\nB=C": "v"}}}, problem.InvalidParameter},
		"a line break":       {AddServerRequest{Name: "a", Launch: config.Launch{Command: "x", Env: map[string]string{"A\nB": "v"}}}, problem.InvalidParameter},
	} {
		if _, err := w.gateway.AddServer(ctx, adminAgent, c.server); problem.From(err) == nil || problem.From(err).Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.gateway.AddServer(ctx, Caller{Actor: auth.Actor{}}, AddServerRequest{Name: "a", Launch: config.Launch{Command: "x"}}); problem.From(err).Code != problem.Forbidden {
		t.Errorf("without an actor: %v", err)
	}
	w.Config().MCPManagement = config.ManageRead
	if _, err := w.gateway.AddServer(ctx, adminAgent, AddServerRequest{Name: "a", Launch: config.Launch{Command: "x"}}); problem.From(err).Code != problem.Forbidden {
		t.Errorf("if agents may only read: %v", err)
	}
	if _, err := w.gateway.RemoveServer(ctx, adminPerson, ServerRef{Name: "new"}); err != nil || len(w.Book.ProposedServers()) > 0 {
		t.Errorf("removed: %v", err)
	}
	if p := problem.From(second(w.gateway.RemoveServer(ctx, adminPerson, ServerRef{Name: "new"}))); p == nil || p.Code != problem.ServerNotFound {
		t.Errorf("removed again: %v", p)
	}
}

// Environment variables can change the behavior of a command, so the approval covers their values.
func TestProposedEnvironmentsArePinned(t *testing.T) {
	w, _ := reviewing(t)
	ctx := context.Background()
	seen := map[string]bool{}
	for _, env := range []map[string]string{nil, {"A": "1"}, {"A": "2"}, {"B": "1"}, {"A": "1", "B": "2"}, {"A": "1\"\n\"B\" \"2"}} {
		if _, err := w.gateway.AddServer(ctx, adminAgent, AddServerRequest{Name: "new", Launch: config.Launch{Command: "c", Env: env}}); err != nil {
			t.Fatal(err)
		}
		r := w.review("new")
		if seen[r.Fingerprint] || !maps.Equal(r.ProposedEnv, env) {
			t.Errorf("%v: %+v", env, r)
		}
		seen[r.Fingerprint] = true
		if _, err := w.gateway.RemoveServer(ctx, adminPerson, ServerRef{Name: "new"}); err != nil {
			t.Fatal(err)
		}
	}
}

// If a step of a review fails, no server starts that was not reviewed.
func TestReviewFailsClosed(t *testing.T) {
	w, running := reviewing(t)
	if _, err := w.gateway.AddServer(context.Background(), adminAgent, proposed1); err != nil {
		t.Fatal(err)
	}
	f := w.review("new").Fingerprint
	approve := func() error {
		_, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: f}})
		return err
	}
	w.EditErr = problem.New(problem.InvalidConfig, "the file cannot be written", "")
	if err := approve(); err == nil || len(running()) > 0 || len(w.Book.ProposedServers()) != 1 {
		t.Errorf("without the file: %v, running %v", err, running())
	}
	if w.Ended[len(w.Ended)-1].Status != activity.Failed {
		t.Errorf("recorded: %+v", w.Ended)
	}
	w.EditErr = nil
	w.Approvals.SetError(errors.New("the disk is full"))
	if err := approve(); err == nil || len(running()) > 0 {
		t.Errorf("without the store: %v, running %v", err, running())
	}
	w.Approvals.SetError(nil)
	f = w.review("new").Fingerprint // the server is now in the file
	if err := approve(); err != nil || !slices.Equal(running(), []string{"new"}) {
		t.Errorf("with both: %v, running %v", err, running())
	}
}

// The quarantine ends in the last step. If the approvals or the file cannot be written, no tool can be called, and the
// same approval can be repeated.
func TestQuarantineEndsLast(t *testing.T) {
	w, running := reviewing(t)
	if _, err := w.gateway.AddServer(context.Background(), adminAgent, proposed1); err != nil {
		t.Fatal(err)
	}
	w.approveServer("new")
	w.SetToolsOn("new", adminReadsTool)
	f := w.review("new").Fingerprint
	approve := func() error {
		_, err := w.gateway.ApproveServer(context.Background(), adminPerson, ServerDecision{ServerRef: ServerRef{Name: "new"}, SeenFingerprint: SeenFingerprint{Fingerprint: f}})
		return err
	}
	held := func(what string, err error) {
		t.Helper()
		w.Catalog.Publish()
		_, refused := w.call(policy.CallToolRead, "new:reads", `{"n":1}`)
		if s, now := w.status("new:reads"), w.review("new"); err == nil || s != "server_quarantined" || refused == nil || refused.Code != problem.ToolLocked ||
			!w.Config().Server("new").Quarantined || now.Stage != StageDefinitions || now.Fingerprint != f {
			t.Errorf("%s: %v, %s, call error: %v, review %+v", what, err, s, refused, now)
		}
	}
	w.Approvals.SetError(errors.New("the disk is full"))
	held("without the store", approve())
	w.Approvals.SetError(nil)
	w.EditErr = problem.New(problem.InvalidConfig, "the file cannot be written", "")
	held("without the file", approve())
	if w.Ended[len(w.Ended)-1].Status != activity.Failed {
		t.Errorf("recorded: %+v", w.Ended)
	}
	w.EditErr = nil
	if err := approve(); err != nil || w.status("new:reads") != "callable" || !slices.Equal(running(), []string{"new"}) {
		t.Errorf("with both: %v, %s, running %v", err, w.status("new:reads"), running())
	}
}

// A server that is removed and added again under the same name gets none of the earlier approvals.
func TestRemovingForgets(t *testing.T) {
	w, _ := reviewing(t)
	ctx := context.Background()
	mine := AddServerRequest{Name: "mine", Launch: config.Launch{Command: "x"}, Trust: "manual"}
	if _, err := w.gateway.AddServer(ctx, adminPerson, mine); err != nil {
		t.Fatal(err)
	}
	w.SetToolsOn("mine", adminReadsTool)
	w.approve("mine:reads")
	// A server that a user removes from the file and adds again keeps its approvals.
	saved := slices.Clone(w.Config().Servers)
	if err := w.RemoveServer("mine"); err != nil {
		t.Fatal(err)
	}
	if err := w.Edit(func(c *config.Config) error { c.Servers = saved; return nil }); err != nil {
		t.Fatal(err)
	}
	w.SetToolsOn("mine", adminReadsTool)
	if s := w.status("mine:reads"); s != "callable" {
		t.Errorf("back in the file: %s", s)
	}
	if _, err := w.gateway.RemoveServer(ctx, adminPerson, ServerRef{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gateway.AddServer(ctx, adminPerson, mine); err != nil {
		t.Fatal(err)
	}
	w.SetToolsOn("mine", adminReadsTool)
	if s := w.status("mine:reads"); s != "pending_approval" {
		t.Errorf("added again: %s", s)
	}
}
