package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/approvaltest"
)

// TestMayStart checks all conditions that decide whether a server may be started.
func TestMayStart(t *testing.T) {
	server := config.Server{Name: "s", Launch: config.Launch{Command: "x"}}
	own, other := server.LaunchFingerprint(), tool.Fingerprint{1}
	launches := map[string]*tool.Fingerprint{"none": nil, "this": &own, "another": &other}
	for name, launch := range launches {
		memory := new(approvaltest.MemoryStore)
		if launch != nil {
			if err := memory.NewBook().ApproveLaunch(t.Context(), "s", *launch, "admin"); err != nil {
				t.Fatal(err)
			}
		}
		for bits := range 8 {
			server.Enabled, server.Quarantined = bits&1 != 0, bits&2 != 0
			known := bits&4 != 0
			book := approval.NewBook(memory, nil)
			if known {
				book = memory.NewBook()
			}
			decided := book.ServerView("s")
			quarantined := server.Quarantined || known && name == "another"
			may := known && server.Enabled && (!quarantined || name == "this")
			if got := IsQuarantined(server, decided); got != quarantined {
				t.Errorf("launch %s, %+v, known %v: quarantined %v", name, server, known, got)
			}
			if got := MayStartServer(server, decided); got != may {
				t.Errorf("launch %s, %+v, known %v: may start %v", name, server, known, got)
			}
		}
	}
}

// remembering is an approval store that has lost the decisions but still has the reviewed launch of server s.
type remembering struct {
	approvaltest.MemoryStore
	launch tool.Fingerprint
}

func (r *remembering) LoadApprovals(context.Context) (approval.StoredDecisions, error) {
	return approval.StoredDecisions{Lost: true, Reviewed: map[string]tool.Fingerprint{"s": r.launch}}, nil
}

// TestLostLaunchApproval checks that a server may not start if its launch was not the last reviewed one, or if its
// configuration puts it in quarantine, after the decisions were lost.
func TestLostLaunchApproval(t *testing.T) {
	server := config.Server{Name: "s", Launch: config.Launch{Command: "x"}, Enabled: true}
	for launch, held := range map[tool.Fingerprint]bool{server.LaunchFingerprint(): false, {1}: true} {
		book := approval.NewBook(&remembering{launch: launch}, nil)
		if err := book.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, quarantined := range []bool{false, true} {
			server.Quarantined = quarantined
			if got := MayStartServer(server, book.ServerView("s")); got != (!held && !quarantined) {
				t.Errorf("another launch: %v, quarantined: %v: may start %v", held, quarantined, got)
			}
		}
		if err := book.RevokeLaunch(t.Context(), "s"); err != nil || book.ServerView("s").ReviewedLaunch() != nil {
			t.Errorf("after the launch is revoked: %v", err)
		}
	}
}

// told stores the outcomes that a catalog reports.
type told struct {
	mu  sync.Mutex // guards all
	all []AdmissionOutcome
}

func (o *told) observe(a AdmissionOutcome) {
	o.mu.Lock()
	o.all = append(o.all, a)
	o.mu.Unlock()
}

// take returns the names that were accepted and held since the last call.
func (o *told) take() (accepted, held []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.all {
		for _, j := range a.Accepted {
			accepted = append(accepted, j.Tool)
		}
		for _, j := range a.Held {
			held = append(held, j.Tool)
		}
	}
	o.all = nil
	return accepted, held
}

// TestAdmissionsAreReportedOnce checks that the outcome for a definition is reported once, however often the definition
// is listed.
func TestAdmissionsAreReportedOnce(t *testing.T) {
	var o told
	server := enabled("s")
	c := New(Options{Servers: []config.Server{server}, Approvals: new(approvaltest.MemoryStore).NewBook(), Observe: o.observe, Logger: quiet()})
	expect := func(when string, accepted, held []string) {
		t.Helper()
		gotAccepted, gotHeld := o.take()
		if !slices.Equal(gotAccepted, accepted) || !slices.Equal(gotHeld, held) {
			t.Errorf("%s: accepted %q, held %q", when, gotAccepted, gotHeld)
		}
	}
	first := named(t, "s", "a", "b")
	c.list("s", first)
	expect("first sight", []string{"a", "b"}, nil)
	c.list("s", first)
	expect("the same again", nil, nil)
	changed := []*tool.Definition{first[0], define(t, "s", `{"name":"b","description":"Other."}`)}
	c.list("s", changed)
	expect("a change", nil, []string{"b"})
	c.list("s", changed)
	expect("the change again", nil, nil)
	commit, err := c.PrepareConfig(&config.Config{Servers: []config.Server{server}})
	if err != nil {
		t.Fatal(err)
	}
	commit()
	c.retryAdmissions(t.Context())
	expect("a configuration without a change", nil, nil)
	server.Quarantined = true
	if commit, err = c.PrepareConfig(&config.Config{Servers: []config.Server{server}}); err != nil {
		t.Fatal(err)
	}
	commit()
	c.list("s", named(t, "s", "x"))
	expect("in quarantine", nil, nil)
}

// TestListsWaitForTheApprovals checks that a list that arrives before the approvals are loaded, or while they cannot be
// stored, is evaluated later. Until then none of its tools can be called.
func TestListsWaitForTheApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := new(approvaltest.MemoryStore)
		memory.SetError(errors.New("the disk sleeps"))
		c := New(Options{Servers: []config.Server{enabled("s")}, Store: newMemory(), Approvals: approval.NewBook(memory, nil), Logger: quiet()})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		defer func() { cancel(); running.Wait() }()
		status := func(name string) policy.ToolStatus {
			synctest.Wait()
			return c.Current().Tool(tool.ID{Server: "s", Tool: name}).Status
		}
		c.ToolsListed("s", named(t, "s", "a"))
		if s := status("a"); s != policy.DisabledUnknown {
			t.Errorf("before the approvals are loaded: %s", s)
		}
		memory.SetError(nil)
		<-c.Approvals.LoadedChan()
		if s := status("a"); s != policy.Callable {
			t.Errorf("after the approvals are loaded: %s", s)
		}
		memory.SetError(errors.New("the disk is full"))
		c.ToolsListed("s", named(t, "s", "a", "b"))
		if a, b := status("a"), status("b"); a != policy.Callable || b != policy.PendingApproval {
			t.Errorf("while nothing can be stored: %s, %s", a, b)
		}
		memory.SetError(nil)
		for status("b") != policy.Callable {
			sleepContext(ctx, admitRetryInterval) // the time of the synctest bubble
		}
	})
}

// TestListsAreStoredInTurn checks that the time limit for storing a list begins when the list is first in the queue,
// even if many servers list at the same time.
func TestListsAreStoredInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Servers: []config.Server{enabled("s")}, Approvals: new(approvaltest.MemoryStore).NewBook(), Logger: quiet()})
		for range cap(c.listSlots) {
			c.listSlots <- struct{}{}
		}
		var listing sync.WaitGroup
		listing.Go(func() { c.ToolsListed("s", named(t, "s", "a")) })
		sleepContext(t.Context(), 2*admitTimeout) // the time of the synctest bubble
		if c.lists["s"] != nil {
			t.Error("a list is stored while other lists use all slots")
		}
		<-c.listSlots
		listing.Wait()
		c.Publish()
		if s := c.Current().Tool(tool.ID{Server: "s", Tool: "a"}).Status; s != policy.Callable {
			t.Errorf("status after its turn: %s", s)
		}
	})
}

// TestTrustChanges checks that a changed trust setting evaluates pending definitions again, and revokes no approval.
func TestTrustChanges(t *testing.T) {
	server := enabled("s")
	server.Trust = config.TrustManual
	c := New(Options{Servers: []config.Server{server}, Approvals: new(approvaltest.MemoryStore).NewBook(), Logger: quiet()})
	c.list("s", named(t, "s", "a"))
	for _, step := range []struct {
		trust config.Trust
		want  policy.ToolStatus
	}{{config.TrustManual, policy.PendingApproval}, {config.TrustScan, policy.Callable}, {config.TrustManual, policy.Callable}} {
		server.Trust = step.trust
		commit, err := c.PrepareConfig(&config.Config{Servers: []config.Server{server}})
		if err != nil {
			t.Fatal(err)
		}
		commit()
		c.retryAdmissions(t.Context())
		if s := c.Current().Tool(tool.ID{Server: "s", Tool: "a"}).Status; s != step.want {
			t.Errorf("trust %s: %s", step.trust, s)
		}
	}
}

// TestRememberedToolsKeepTheirApprovals checks that the restored tools of a server that is not started keep the status
// that was decided.
func TestRememberedToolsKeepTheirApprovals(t *testing.T) {
	keeper, memory := newMemory(), new(approvaltest.MemoryStore)
	var raws []json.RawMessage
	for _, d := range named(t, "s", "a", "b") {
		raws = append(raws, d.Raw)
	}
	keeper.tools["s"] = raws
	book := memory.NewBook()
	c := New(Options{Servers: []config.Server{enabled("s")}, Store: keeper, Approvals: book, Logger: quiet()})
	c.list("s", named(t, "s", "a", "b"))
	if err := book.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "b"}, false, "admin"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		server config.Server
		a, b   policy.ToolStatus
	}{{enabled("s"), policy.Callable, policy.DisabledByUser}, {config.Server{Name: "s"}, policy.ServerDisabled, policy.ServerDisabled}} {
		again := New(Options{Servers: []config.Server{s.server}, Store: keeper, Approvals: memory.NewBook(), Logger: quiet()})
		again.loadSavedTools(t.Context())
		again.Publish()
		a, b := again.Current().Tool(tool.ID{Server: "s", Tool: "a"}), again.Current().Tool(tool.ID{Server: "s", Tool: "b"})
		if a.Status != s.a || b.Status != s.b {
			t.Errorf("%+v: a %s, b %s", s.server, a.Status, b.Status)
		}
	}
}

// TestStatusOfEveryTool compares the status for every combination of its inputs with the table in the contract: the
// first reason that applies determines the status.
func TestStatusOfEveryTool(t *testing.T) {
	const name = "tool"
	d := named(t, "s", name)[0]
	for bits := range 1 << 7 {
		is := func(bit int) bool { return bits&(1<<bit) != 0 }
		server := config.Server{Name: "s", Enabled: is(0), Quarantined: is(1)}
		if is(2) {
			server.DisabledTools = []string{name}
		}
		memory := new(approvaltest.MemoryStore)
		book := memory.NewBook()
		if is(3) {
			if err := book.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{newAnalyzedTool(d, scan.NewCrossRefIndex()).approvalCandidate(policy.InferOff)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if is(4) {
			if err := book.SwitchTool(t.Context(), d.ID, false, "admin"); err != nil {
				t.Fatal(err)
			}
		}
		if is(5) { // another launch was approved
			if err := book.ApproveLaunch(t.Context(), "s", tool.Fingerprint{1}, "admin"); err != nil {
				t.Fatal(err)
			}
		}
		known := is(6)
		if !known {
			book = approval.NewBook(memory, nil)
		}
		want := policy.Callable
		for _, row := range []struct {
			applies bool
			status  policy.ToolStatus
		}{ // the last condition that applies wins: the table in reverse order
			{!is(3), policy.PendingApproval},
			{is(4), policy.DisabledByUser},
			{!known, policy.DisabledUnknown},
			{is(2), policy.DisabledByConfig},
			{is(1) || known && is(5), policy.ServerQuarantined},
			{!is(0), policy.ServerDisabled},
		} {
			if row.applies {
				want = row.status
			}
		}
		if got := policy.StatusOf(newStatusFacts(server, book.ServerView("s"), newAnalyzedTool(d, scan.NewCrossRefIndex()))); got != want {
			t.Errorf("%07b: %s, want %s", bits, got, want)
		}
	}
}
