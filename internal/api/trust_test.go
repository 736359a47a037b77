package api

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

const (
	seenPrint  = "5ee0000000000000000000000000000000000000000000000000000000000000"
	otherPrint = "07e0000000000000000000000000000000000000000000000000000000000000"
	pinned     = `{"fingerprint":"` + seenPrint + `"}`
)

// decided records one decision.
func (f *fake) decided(c ops.Caller, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers = append(f.callers, c)
	f.decisions = append(f.decisions, fmt.Sprintf(format, args...))
}

func (f *fake) AddServer(_ context.Context, c ops.Caller, s ops.AddServerRequest) (ops.ServerView, error) {
	f.added = append(f.added, s)
	f.decided(c, "add %s", s.Name)
	return ops.ServerView{Name: s.Name, Protocol: "stdio", Enabled: true, State: "connecting"}, f.failure
}

func (f *fake) RemoveServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.Removed, error) {
	f.decided(c, "remove %s", in.Name)
	_, err := f.Server(ctx, c, in)
	return ops.Removed{Removed: in.Name}, err
}

func (f *fake) EnableServer(_ context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	return f.switchServer(c, in.Name, true)
}

func (f *fake) DisableServer(_ context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	return f.switchServer(c, in.Name, false)
}

func (f *fake) switchServer(c ops.Caller, name string, on bool) (ops.ServerView, error) {
	f.decided(c, "enable %s %v", name, on)
	v, err := f.server(name)
	v.Enabled = on
	return v, err
}

func (f *fake) QuarantineServer(_ context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	name := in.Name
	f.decided(c, "quarantine %s", name)
	v, err := f.server(name)
	v.Quarantined, v.Stage = true, ops.StageDefinitions
	return v, err
}

func (f *fake) ChangeServer(_ context.Context, c ops.Caller, in Change) (ops.ServerView, error) {
	name, key, value := in.Name, in.Key, in.Value
	f.decided(c, "set %s %s %s", name, key, value)
	return f.server(name)
}

func testReview() ops.ServerReview {
	return ops.ServerReview{Name: "github", Stage: ops.StageLaunch, Fingerprint: seenPrint, State: "stopped",
		Launch: ops.LaunchView{Protocol: "stdio", Command: "npx", Args: []string{"-y", "x"}, Env: []string{"TOKEN"}}}
}

func (f *fake) ReviewServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerReview, error) {
	name := in.Name
	_, err := f.server(name)
	return testReview(), err
}

func (f *fake) ApproveServer(ctx context.Context, c ops.Caller, in ops.ServerDecision) (ops.ServerReview, error) {
	name, fingerprint := in.Name, in.Fingerprint
	f.decided(c, "approve %s", name)
	if fingerprint != seenPrint {
		return ops.ServerReview{}, conflict()
	}
	return f.ReviewServer(ctx, c, in.ServerRef)
}

func conflict() error {
	return problem.New(problem.Conflict, "It has changed since you looked.", "Look again.").With("fingerprint", seenPrint)
}

func (f *fake) EnableTool(ctx context.Context, c ops.Caller, in ops.ToolRef) (ops.ToolView, error) {
	return f.switchTool(ctx, c, tool.ID(in), true)
}

func (f *fake) DisableTool(ctx context.Context, c ops.Caller, in ops.ToolRef) (ops.ToolView, error) {
	return f.switchTool(ctx, c, tool.ID(in), false)
}

func (f *fake) switchTool(_ context.Context, c ops.Caller, id tool.ID, on bool) (ops.ToolView, error) {
	f.decided(c, "switch %s %v", id, on)
	v := testTool(id.Tool)
	if !on {
		v.Status = "disabled_by_user"
	}
	return v, nil
}

func (f *fake) ApproveTool(_ context.Context, c ops.Caller, in ops.ToolApproval) (ops.ToolView, error) {
	id, fingerprint := tool.ID(in.ToolRef), in.Fingerprint
	f.decided(c, "approve %s", id)
	if fingerprint != seenPrint {
		return ops.ToolView{}, conflict()
	}
	return testTool(id.Tool), nil
}

func (f *fake) BlockTool(_ context.Context, c ops.Caller, in ops.ToolDecision) (ops.ToolView, error) {
	id, fingerprint := tool.ID(in.ToolRef), in.Fingerprint
	f.decided(c, "block %s", id)
	if fingerprint != seenPrint {
		return ops.ToolView{}, conflict()
	}
	return testTool(id.Tool), nil
}

func testDiff(id tool.ID) ops.ToolDiff {
	return ops.ToolDiff{Name: id.String(), Server: id.Server, Tool: id.Tool, Status: "pending_approval", Reason: "changed", Fingerprint: seenPrint,
		Comparison: ops.Comparison{Definition: json.RawMessage(`{"name":"x"}`),
			Approved: &ops.ApprovedView{Fingerprint: otherPrint, By: "trust:scan", At: time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)},
			Changes:  []approval.Difference{{Path: "/annotations/readOnlyHint", Kind: "changed", Old: json.RawMessage("true"), New: json.RawMessage("false"), Hint: true}}},
		ScanResult: ops.ScanResult{Verdict: scan.Clean}}
}

func (f *fake) DiffTool(_ context.Context, _ ops.Caller, in ops.ToolRef) (ops.ToolDiff, error) {
	id := tool.ID(in)
	return testDiff(id), nil
}

func (f *fake) DiffOffer(_ context.Context, _ ops.Caller, in ops.PrimitiveRef) (ops.OfferDiff, error) {
	server, kind, name := in.Server, in.Kind, in.Name
	return ops.OfferDiff{Kind: kind, Server: server, Name: name, Fingerprint: seenPrint, Comparison: ops.Comparison{Definition: json.RawMessage(`{}`)}}, nil
}

func (f *fake) ApproveOffer(ctx context.Context, c ops.Caller, in ops.PrimitiveDecision) (ops.OfferDiff, error) {
	return f.decideOffer(ctx, "approve", c, in)
}

func (f *fake) BlockOffer(ctx context.Context, c ops.Caller, in ops.PrimitiveDecision) (ops.OfferDiff, error) {
	return f.decideOffer(ctx, "block", c, in)
}

func (f *fake) decideOffer(ctx context.Context, verb string, c ops.Caller, in ops.PrimitiveDecision) (ops.OfferDiff, error) {
	server, kind, name, fingerprint := in.Server, in.Kind, in.Name, in.Fingerprint
	f.decided(c, "%s %s %s:%s", verb, kind, server, name)
	if fingerprint != seenPrint {
		return ops.OfferDiff{}, conflict()
	}
	return f.DiffOffer(ctx, c, in.PrimitiveRef)
}

func (f *fake) Approvals(context.Context, ops.Caller, ops.PendingApprovalsQuery) (ops.Waiting, error) {
	if f.failure != nil {
		return ops.Waiting{}, f.failure
	}
	return ops.Waiting{Tools: []ops.WaitingTool{{Name: "github:x", Server: "github", Tool: "x", PendingInfo: ops.PendingInfo{Reason: "new", Fingerprint: seenPrint}}}}, nil
}

// An action affects exactly the named tool, even if the name has unusual characters.
func TestActionsOnToolsWithAnyName(t *testing.T) {
	t.Parallel()
	f := &fake{}
	both(t, f, func(t *testing.T, c *Client) {
		for _, name := range []string{"plain", "a/b", "a//b", "..", ".", "a.b:c", "x y", "ünï", "100%", "a/../b", "?q#f", "a+b", "a/", "/a",
			"approve", "a/approve", "approve/approve", "a%2Fapprove", "diff", "a/diff", "enable", "%2F", "%", "tools/x/approve"} {
			id := tool.ID{Server: "github", Tool: name}
			f.decisions = nil
			diff, err := DiffTool.Call(t.Context(), c, ops.ToolRef(id))
			if err != nil || diff.Tool != name {
				t.Errorf("the difference of %q: %q, %v", name, diff.Tool, err)
			}
			if one, err := GetTool.Call(t.Context(), c, ops.ToolRef(id)); err != nil || one.Tool != name {
				t.Errorf("the tool %q: %q, %v", name, one.Tool, err)
			}
			_, err = ApproveTool.Call(t.Context(), c, ops.ToolApproval{ToolDecision: ops.ToolDecision{ToolRef: ops.ToolRef(id), SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}}})
			_, err2 := BlockTool.Call(t.Context(), c, ops.ToolDecision{ToolRef: ops.ToolRef(id), SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}})
			_, err3 := EnableTool.Call(t.Context(), c, ops.ToolRef(id))
			_, err4 := DisableTool.Call(t.Context(), c, ops.ToolRef(id))
			want := []string{"approve " + id.String(), "block " + id.String(), "switch " + id.String() + " true", "switch " + id.String() + " false"}
			if err != nil || err2 != nil || err3 != nil || err4 != nil || strings.Join(f.decisions, "|") != strings.Join(want, "|") {
				t.Errorf("%q: %q, %v %v %v %v", name, f.decisions, err, err2, err3, err4)
			}
		}
	})
}

// An action affects exactly the named prompt, resource or template, whatever characters its name contains.
func TestActionsOnPrimitivesWithAnyName(t *testing.T) {
	t.Parallel()
	f := &fake{}
	both(t, f, func(t *testing.T, c *Client) {
		for _, kind := range tool.PrimitiveKinds() {
			for _, name := range []string{"plain", "a/b", "..", "x y", "ünï", "?q#f", "approve", "a/approve", "%2F", "file:///a/b%20c", "demo://{id}{?q*}", "a/diff"} {
				if kind == tool.KindInstructions {
					name = ""
				}
				f.decisions = nil
				diff, err := Primitives[kind].Diff.Call(t.Context(), c, ops.PrimitiveRef{Server: "github", Kind: kind, Name: name})
				if err != nil || diff.Name != name || diff.Kind != kind || diff.Changes == nil || diff.Findings == nil {
					t.Errorf("the difference of %q: %+v, %v", name, diff, err)
				}
				_, err = Primitives[kind].Approve.Call(t.Context(), c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef{Server: "github", Name: name}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}})
				_, err2 := Primitives[kind].Block.Call(t.Context(), c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef{Server: "github", Name: name}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}})
				want := fmt.Sprintf("approve %[1]s github:%[2]s|block %[1]s github:%[2]s", kind, name)
				if err != nil || err2 != nil || strings.Join(f.decisions, "|") != want {
					t.Errorf("%q: %q, %v %v", name, f.decisions, err, err2)
				}
				_, err = Primitives[kind].Approve.Call(t.Context(), c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef{Server: "github", Name: name}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: otherPrint}})
				if p := problem.From(err); p == nil || p.Code != problem.Conflict {
					t.Errorf("%q with another fingerprint: %v", name, err)
				}
			}
		}
	})
}

// An ambiguous path is rejected.
func TestAmbiguousPathsAreRefused(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	for _, path := range []string{"a/b/approve", "a/approve/approve", "approve", "/approve", "a/b/c/block", "a/b/enable", "%2F/approve"} {
		r := ask(t, s, "POST", Prefix+"/servers/github/tools/"+path, pinned)
		if r.status == 200 || len(f.decisions) != 0 {
			t.Errorf("%s: %d %s, %q", path, r.status, r.body, f.decisions)
		}
	}
	r := ask(t, s, "POST", Prefix+"/servers/github/tools/a/b/approve", pinned)
	if d := problemOf(t, r); !strings.Contains(d.Hint, "%2F") {
		t.Errorf("%+v", d)
	}
}

func TestDecisionsNeedTheSeenFingerprint(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	for _, path := range []string{"/servers/github/approve", "/servers/github/tools/x/approve", "/servers/github/tools/x/block",
		"/servers/github/prompts/x/approve", "/servers/github/resources/x/block", "/servers/github/templates/x/block", "/servers/github/instructions/approve"} {
		for body, code := range map[string]problem.Code{
			`{"fingerprint":"` + otherPrint + `"}`:  problem.Conflict,
			`{}`:                                    problem.InvalidParameter,
			`{"fingerprint":null}`:                  problem.InvalidParameter,
			`{"fingerprint":5}`:                     problem.InvalidParameter,
			`{"fingerprnt":"x"}`:                    problem.InvalidRequest,
			`{"fingerprint":"x","fingerprint":"y"}`: problem.InvalidRequest,
			`[]`:                                    problem.InvalidRequest,
			``:                                      problem.InvalidRequest,
		} {
			before := len(f.decisions)
			r := ask(t, s, "POST", Prefix+path, body)
			d := problemOf(t, r)
			if d.Code != code || (code == problem.Conflict) != (r.status == 409) {
				t.Errorf("%s %s: %d %s", path, body, r.status, r.body)
			}
			if code == problem.Conflict && d.Details["fingerprint"] != seenPrint {
				t.Errorf("%s: the conflict does not contain the current state: %s", path, r.body)
			}
			if code != problem.Conflict && len(f.decisions) != before {
				t.Errorf("%s %s reached the gateway", path, body)
			}
		}
	}
}

func TestServersAreAddedAsSent(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	r := ask(t, s, "POST", Prefix+"/servers", `{"name":"new","command":"npx","args":["-y","<x>"],"env":{"T":"${env:T}"},"working_dir":"~/w","trust":"manual","quarantined":true,"url":null}`)
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	same(t, "server", f.added[0], ops.AddServerRequest{Name: "new", Launch: config.Launch{Command: "npx", Args: []string{"-y", "<x>"}, Env: map[string]string{"T": "${env:T}"}, WorkingDir: "~/w"}, Trust: "manual", Quarantined: true}, nil)
	const secret = "hunter2-hunter2"
	for body, parameter := range map[string]string{
		`{}`:            "name",
		`{"name":null}`: "name",
		`{"name":"a","env":{"T":["` + secret + `"]}}`:           "env",
		`{"name":"a","env":{"T":null}}`:                         "env",
		`{"name":"a","env":["` + secret + `"]}`:                 "env",
		`{"name":"a","args":"` + secret + `"}`:                  "args",
		`{"name":"a","args":["a",null]}`:                        "args",
		`{"name":"a","headers":{"Authorization":5}}`:            "headers",
		`{"name":"a","quarantined":"yes"}`:                      "quarantined",
		`{"name":"a","command":["` + secret + `"],"args":[""]}`: "command",
	} {
		r := ask(t, s, "POST", Prefix+"/servers", body)
		d := problemOf(t, r)
		if r.status != 400 || d.Details["parameter"] != parameter || strings.Contains(r.body, secret) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := ask(t, s, "POST", Prefix+"/servers", `{"name":"a","comand":"x"}`); problemOf(t, r).Hint != "Did you mean command?" {
		t.Errorf("%s", r.body)
	}
	// The servers in a list are parsed as strictly as a single server.
	for body, want := range map[string]string{
		`{"servers":[{"name":"a","comand":"x"}]}`:                   "Did you mean command?",
		`{"servers":[{"name":"a","command":"x"},{"command":"x"}]}`:  `"index":1`,
		`{"servers":[{"name":"a","env":{"T":["` + secret + `"]}}]}`: `"parameter":"env"`,
		`{"servers":[{"name":"a"},null]}`:                           `"parameter":"servers"`,
		`{"servers":[["a"]]}`:                                       `"parameter":"servers"`,
		`{"servers":{}}`:                                            `"allowed":"array"`,
		`{}`:                                                        `"parameter":"servers"`,
	} {
		if r := ask(t, s, "POST", Prefix+"/servers/add", body); r.status != 400 || !strings.Contains(r.body, want) || strings.Contains(r.body, secret) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if len(f.added) != 1 {
		t.Errorf("%d servers reached the gateway", len(f.added))
	}
}

func TestPatchOfAServer(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	for body, want := range map[string]string{
		`{"enabled":true}`:                       "set github enabled true",
		`{"enabled":false}`:                      "set github enabled false",
		`{"quarantined":true}`:                   "set github quarantined true",
		`{"trust":"manual"}`:                     `set github trust "manual"`,
		`{"trust":null}`:                         "set github trust ",
		`{"disabled_tools":["a*", "b"]}`:         `set github disabled_tools ["a*", "b"]`,
		`{"hint_overrides":{"a":{"x":1}}}`:       `set github hint_overrides {"a":{"x":1}}`,
		`{"command":["npx","-y","p"]}`:           `set github command ["npx","-y","p"]`,
		`{"env":{"A":"1","B":null}}`:             `set github env {"A":"1","B":null}`,
		`{"call_timeout":"30s"}`:                 `set github call_timeout "30s"`,
		`{"enabled":true,"quarantined":true}`:    "",
		`{"trust":"auto","enabled":true}`:        "",
		`{}`:                                     "",
		`{"enabled":null}`:                       "",
		`{"quarantined":false}`:                  "",
		`{"enabled":"false"}`:                    "",
		`{"command":"something"}`:                "",
		`{"enabled":true,"command":"something"}`: "",
	} {
		f.decisions = nil
		r := ask(t, s, "PATCH", Prefix+"/servers/github", body)
		if strings.Join(f.decisions, "|") != want || (r.status == 200) != (want != "") {
			t.Errorf("%s: %d %s, %q", body, r.status, r.body, f.decisions)
		}
	}
	r := ask(t, s, "PATCH", Prefix+"/servers/github", `{"quarantined":false}`)
	if d := problemOf(t, r); !strings.Contains(d.Hint, "/review") {
		t.Errorf("%s", r.body)
	}
}

// The implementation receives the caller of every decision, to record it.
func TestDecisionsNameTheirCaller(t *testing.T) {
	f := &fake{}
	both(t, f, func(t *testing.T, c *Client) {
		ctx, id, github := t.Context(), tool.ID{Server: "github", Tool: "x"}, ops.ServerRef{Name: "github"}
		f.callers = nil
		_, err := AddServer.Call(ctx, c, ops.AddServerRequest{Name: "new", Launch: config.Launch{URL: "https://example.com/mcp", Headers: map[string]string{"A": "<b>"}}})
		ok(t, err)
		_, err = DisableServer.Call(ctx, c, github)
		ok(t, err)
		_, err = QuarantineServer.Call(ctx, c, github)
		ok(t, err)
		_, err = ChangeServer.Call(ctx, c, Change{ops.ServerChange{ServerRef: github, Key: "trust", Value: json.RawMessage(`"manual"`)}})
		ok(t, err)
		_, err = ChangeServer.Call(ctx, c, Change{ops.ServerChange{ServerRef: github, Key: "trust"}})
		ok(t, err)
		review, err := ReviewServer.Call(ctx, c, github)
		same(t, "review", review, listed(testReview()), err)
		_, err = ApproveServer.Call(ctx, c, ops.ServerDecision{ServerRef: github, SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}})
		ok(t, err)
		_, err = ApproveServer.Call(ctx, c, ops.ServerDecision{ServerRef: github, SeenFingerprint: ops.SeenFingerprint{Fingerprint: otherPrint}})
		if p := problem.From(err); p == nil || p.Code != problem.Conflict {
			t.Errorf("got %v", err)
		}
		_, err = ApproveTool.Call(ctx, c, ops.ToolApproval{ToolDecision: ops.ToolDecision{ToolRef: ops.ToolRef(id), SeenFingerprint: ops.SeenFingerprint{Fingerprint: seenPrint}}})
		ok(t, err)
		removed, err := RemoveServer.Call(ctx, c, github)
		same(t, "removed", removed, ops.Removed{Removed: "github"}, err)
		waiting, err := ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
		if err != nil || waiting.Servers == nil || len(waiting.Tools) != 1 {
			t.Errorf("%+v %v", waiting, err)
		}
		if len(f.callers) != 9 {
			t.Errorf("%d callers", len(f.callers))
		}
		for _, caller := range f.callers {
			if caller.Actor.Kind != auth.Admin || caller.Source != activity.SourceCLI || caller.RequestID == "" || caller.ClientName != "mcpproxy" {
				t.Errorf("%+v", caller)
			}
		}
	})
}

// listed returns v with empty lists instead of nil lists, as the API returns it.
func listed[T any](v T) T {
	replaceNilLists(reflect.ValueOf(&v).Elem())
	return v
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
