package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// pendingAndLeaseOperations returns the fake's operations on pending calls and leases.
func (f *fakeOperations) pendingAndLeaseOperations() []api.Operation {
	one := ops.PendingCall{ID: "k7q2abcdefghijkl", State: ask.Waiting, Name: "github:delete_repo", Server: "github", Tool: "delete_repo", Lane: "destructive",
		LaneReason: "the tool's hints declare it", Variant: "call_tool_destructive", Rule: "ask.destructive", Arguments: json.RawMessage(`{"repo":"old\u001b[31m"}`), Reason: "The user wants it\x1b[31m gone.",
		Actor: "agent:cursor", ClientName: "cursor", Version: "1.2", Source: "mcp", AskedAt: parseRFC3339("2026-01-15T10:29:00Z"), LastAsked: parseRFC3339("2026-01-15T10:29:30Z"), Until: parseRFC3339("2026-01-15T10:44:30Z"), ActivityID: "01JG2K4"}
	two := one
	two.ID, two.Name, two.Tool, two.Lane, two.Truncated, two.Arguments = "k8", "github:create_issue", "create_issue", "write", true, json.RawMessage(`"{\"body\":\"long"`)
	lease := ops.LeaseView{ID: "l1abcdefghijklmn", Server: "github", Lane: "write", Tools: "create_*", Client: "cursor", Calls: 20, CallsLeft: 7, GivenAt: parseRFC3339("2026-01-15T10:20:00Z"), Until: parseRFC3339("2026-01-15T10:35:00Z"), GivenBy: "admin", GivenVia: "cli"}
	given := func(q ops.PendingCall, state ask.QuestionState, why string) ops.PendingCall {
		when := parseRFC3339("2026-01-15T10:30:00Z")
		q.State, q.AnsweredAt, q.AnsweredBy, q.Answered, q.Denial = state, &when, "admin", "cli", why
		return q
	}
	find := func(id string) (ops.PendingCall, error) {
		switch id {
		case one.ID:
			return one, nil
		case two.ID:
			return two, nil
		case "done":
			q := given(one, ask.Denied, "Not today.")
			q.ID = id
			return q, nil
		}
		return ops.PendingCall{}, problem.Newf(problem.NotFound, "No pending call has the id '%s'.", id)
	}
	return []api.Operation{
		api.ListPending.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.PendingList, error) {
			return ops.PendingList{Pending: []ops.PendingCall{one, two}}, nil
		}),
		api.GetPending.WithHandler(func(_ context.Context, _ ops.Caller, in ops.PendingCallRef) (ops.PendingCall, error) {
			return find(in.ID)
		}),
		api.ApproveCall.WithHandler(func(_ context.Context, _ ops.Caller, in ops.PendingCallRef) (ops.PendingCall, error) {
			q, err := find(in.ID)
			if err == nil && q.State != ask.Waiting {
				err = problem.New(problem.Conflict, "The question done was denied by admin.", "")
			}
			return given(q, ask.Approved, ""), err
		}),
		api.DenyCall.WithHandler(func(_ context.Context, _ ops.Caller, in ops.DenyCallRequest) (ops.PendingCall, error) {
			q, err := find(in.ID)
			return given(q, ask.Denied, in.Reason), err
		}),
		api.ListLeases.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.LeaseList, error) {
			return ops.LeaseList{Leases: []ops.LeaseView{lease}}, nil
		}),
		api.GrantLease.WithHandler(func(_ context.Context, _ ops.Caller, in ops.GrantLeaseRequest) (ops.LeaseView, error) {
			made := lease
			made.Lane = "write"
			return made, nil
		}),
		api.RevokeLease.WithHandler(func(_ context.Context, _ ops.Caller, in ops.LeaseRef) (ops.LeaseView, error) {
			if in.ID != lease.ID {
				return ops.LeaseView{}, problem.New(problem.NotFound, "There is no lease.", "")
			}
			return lease, nil
		}),
	}
}

func TestPendingTables(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for name, line := range map[string]string{
		"pending-list": "pending list", "pending-show": "pending show k7", "pending-show-answered": "pending show done", "pending-approve": "pending approve k7 --yes",
		"pending-deny": "pending deny k8 --reason no", "pending-json": "pending show k8 -o json",
		"lease-list": "lease list", "lease-grant": "lease grant github --lane write --for 15m --calls 20 --client cursor --yes", "lease-revoke": "lease revoke l1",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.stderr)
		}
		compareWithGolden(t, name, got.stdout+stderrSection(got.stderr))
		if strings.ContainsAny(got.stdout+got.stderr, "\x1b\u202e\a") {
			t.Errorf("%s: the output contains terminal control sequences", line)
		}
	}
	for line, code := range map[string]int{
		"pending show k": problem.ExitUsage, "pending show zz": problem.ExitNotFound, "pending approve done --yes": problem.ExitFailed, "pending approve": problem.ExitUsage,
		"lease revoke zz": problem.ExitNotFound, "lease grant": problem.ExitUsage, "lease grant github --calls 0 --yes": problem.ExitUsage, "lease grant github --calls x": problem.ExitUsage,
	} {
		if got := w.runCommand(strings.Fields(line)...); got.code != code {
			t.Errorf("%s: exit code %d, want %d: %s", line, got.code, code, got.stderr)
		}
	}
}

// TestAnsweringConfirms checks that the command shows the call before the decision, and does nothing without a yes.
func TestAnsweringConfirms(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"pending approve k7", "pending deny k7", "lease grant github"} {
		w := newEnvWithDaemon(t, &fakeOperations{})
		if got := w.runCommand(strings.Fields(line)...); got.code != problem.ExitUsage || !strings.Contains(got.stderr, "Not a terminal") {
			t.Errorf("%s without a terminal: %+v", line, got)
		}
		var asked string
		w.deps.Ask = func(_ context.Context, question string) (string, error) {
			asked = question
			return "n", nil
		}
		got := w.runCommand(strings.Fields(line)...)
		if got.code != problem.ExitInterrupted || asked == "" {
			t.Errorf("%s, answered no: %+v, asked %q", line, got, asked)
		}
		if strings.HasPrefix(line, "pending") && (!strings.Contains(got.stderr, `"repo":"old`) || !strings.Contains(got.stderr, "the tool's hints declare it")) {
			t.Errorf("%s: the call is not shown before the question: %s", line, got.stderr)
		}
	}
}
