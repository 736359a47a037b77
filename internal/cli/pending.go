package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func writePendingCalls(p *printer, all ops.PendingList) {
	list[ops.PendingCall]{
		none: "No call awaits approval.",
		columns: []column[ops.PendingCall]{
			{title: "ID", text: func(q ops.PendingCall) string { return q.ID }},
			{title: "TOOL", text: func(q ops.PendingCall) string { return q.Name }},
			{title: "LANE", text: func(q ops.PendingCall) string { return q.Lane }},
			{title: "ACTOR", text: func(q ops.PendingCall) string { return q.Actor }},
			{title: "CLIENT", wide: true, text: func(q ops.PendingCall) string { return q.ClientName }},
			{title: "RULE", wide: true, text: func(q ops.PendingCall) string { return q.Rule }},
			{title: "AGE", cell: func(p *printer, q ops.PendingCall) string { return p.formatAge(&q.AskedAt) }},
			{title: "ARGUMENTS", cell: func(_ *printer, q ops.PendingCall) string { return oneLineJSON(q.Arguments) }},
		},
		narrow: slices.Concat(columnTruncationStep("ARGUMENTS", 20), columnHidingSteps("ACTOR", "LANE"), columnTruncationStep("TOOL", 16), columnHidingSteps("AGE"), columnTruncationStep("ARGUMENTS", 8)),
		exact:  true,
	}.write(p, all.Pending)
	if len(all.Pending) == 0 {
		return
	}
	p.addNote("Decide with `mcpproxy pending approve ID`, or `mcpproxy pending deny ID --reason TEXT`.")
}

// writePendingCall shows a pending call above the question whether to approve it.
func writePendingCall(p *printer, q ops.PendingCall) {
	var f fieldList
	f.add("Call", escapeInvisibleLine(q.Name))
	f.add("State", escapeInvisibleLine(string(q.State)))
	f.add("Lane", escapeInvisibleLine(q.Lane)+", because "+toOneLine(q.LaneReason))
	f.add("Rule", toOneLine(q.Rule))
	f.add("Caller", toOneLine(strings.TrimSpace(q.Actor+", "+q.Source+" "+q.ClientName+" "+q.Version)))
	if q.Reason != "" {
		f.add("Agent's reason", toOneLine(q.Reason))
	}
	f.add("Waiting since", p.formatTime(&q.AskedAt))
	f.add("ID", escapeInvisibleLine(q.ID))
	if q.AnsweredAt != nil {
		f.add("Answered", p.formatTime(q.AnsweredAt)+" by "+toOneLine(q.AnsweredBy)+" ("+toOneLine(q.Answered)+")")
	}
	if q.Denial != "" {
		f.add("Reason", toOneLine(q.Denial))
	}
	f.write(p)
	what := "Arguments:"
	if q.Truncated {
		what = "Arguments (only the beginning is shown):"
	}
	p.writeWrapped("", what)
	p.writeWrapped("  ", toPrintable(string(q.Arguments)))
}

// completeIDPrefix returns the only ID with the given prefix. If there is none, it returns the prefix, which the daemon
// then rejects.
func completeIDPrefix(begins string, ids []string, noun, listCommand string) (string, error) {
	var found []string
	for _, id := range ids {
		switch {
		case id == begins:
			return id, nil
		case strings.HasPrefix(id, begins):
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return begins, nil
	case 1:
		return found[0], nil
	}
	return "", problem.Newf(problem.Ambiguous, "%d %s begin with '%s'.", len(found), noun, toPrintable(begins)).WithHint("Enter more of the ID: `" + listCommand + "`.")
}

// findPendingCall finds a pending call by a prefix of its id.
func findPendingCall(ctx context.Context, c *api.Client, begins string) (ops.PendingCall, error) {
	all, err := api.ListPending.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return ops.PendingCall{}, err
	}
	begins, err = completeIDPrefix(begins, mapSlice(all.Pending, func(q ops.PendingCall) string { return q.ID }), "waiting calls", "mcpproxy pending list")
	if err != nil {
		return ops.PendingCall{}, err
	}
	return api.GetPending.Call(ctx, c, ops.PendingCallRef{ID: begins})
}

func newPendingShowCommand(r *invocation) commandSpec {
	return commandSpec{complete: r.completeFromDaemon(pendingCallIDs), run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (ops.PendingCall, error) {
		return findPendingCall(ctx, c, args[0])
	}, writePendingCall)}
}

// decidePendingCall shows a pending call, asks the user and sends the answer. With --yes, the ID must be complete.
func (r *invocation) decidePendingCall(ctx context.Context, c *api.Client, id, question string, said confirmationFlags, answer func(id string) (ops.PendingCall, error), done string) error {
	q, err := findPendingCall(ctx, c, id)
	if err != nil {
		return err
	}
	if q.State == ask.Waiting && !said.yes {
		writePendingCall(r.newPrinter(r.Stderr), q)
	}
	if err := r.requireConfirmation(ctx, said, question, "Review it with `mcpproxy pending show "+q.ID+"`, then pass --yes."); err != nil {
		return err
	}
	after, err := answer(q.ID)
	if err != nil {
		return err
	}
	return r.printOutput(after, func(p *printer) { p.writeLine("%s", fmt.Sprintf(done, escapeInvisibleLine(after.Name))) })
}

func newPendingApproveCommand(r *invocation) commandSpec {
	var said confirmationFlags
	return commandSpec{flags: map[string]any{"yes": &said.yes}, complete: r.completeFromDaemon(pendingCallIDs), run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		return r.decidePendingCall(ctx, c, args[0], "Approve this call once?", said, func(id string) (ops.PendingCall, error) {
			return api.ApproveCall.Call(ctx, c, ops.PendingCallRef{ID: id})
		}, "Approved: %s may be called with these arguments, once, within 15 minutes.")
	})}
}

func newPendingDenyCommand(r *invocation) commandSpec {
	var said confirmationFlags
	in := ops.DenyCallRequest{}
	return commandSpec{flags: map[string]any{"yes": &said.yes, "reason": &in.Reason}, complete: r.completeFromDaemon(pendingCallIDs), run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		said.yes = said.yes || in.Reason != "" // a user who states a reason has seen the call
		return r.decidePendingCall(ctx, c, args[0], "Deny this call?", said, func(id string) (ops.PendingCall, error) {
			in.ID = id
			return api.DenyCall.Call(ctx, c, in)
		}, "Denied. The same call of %s is rejected for 15 minutes.")
	})}
}

func writeLeases(p *printer, all ops.LeaseList) {
	list[ops.LeaseView]{
		none: "No lease is active. Grant one with `mcpproxy lease grant SERVER`.",
		columns: []column[ops.LeaseView]{
			{title: "ID", text: func(l ops.LeaseView) string { return l.ID }},
			{title: "SERVER", text: func(l ops.LeaseView) string { return l.Server }},
			{title: "LANE", text: func(l ops.LeaseView) string { return l.Lane }},
			{title: "TOOLS", text: func(l ops.LeaseView) string { return cmp.Or(l.Tools, "all") }},
			{title: "CLIENT", text: func(l ops.LeaseView) string { return cmp.Or(l.Client, "any client") }},
			{title: "GRANTED", wide: true, cell: func(p *printer, l ops.LeaseView) string { return p.formatTime(&l.GivenAt) }},
			{title: "GRANTED BY", wide: true, text: func(l ops.LeaseView) string { return l.GivenBy }},
			{title: "CALLS LEFT", right: true, text: func(l ops.LeaseView) string { return fmt.Sprintf("%d of %d", l.CallsLeft, l.Calls) }},
			{title: "UNTIL", cell: func(p *printer, l ops.LeaseView) string { return p.formatTime(&l.Until) }},
		},
		narrow: slices.Concat(columnHidingSteps("CLIENT"), columnTruncationStep("TOOLS", 12), columnHidingSteps("TOOLS"), columnTruncationStep("SERVER", 8)),
		exact:  true,
	}.write(p, all.Leases)
}

func newLeaseGrantCommand(r *invocation) commandSpec {
	in, said := ops.GrantLeaseRequest{}, confirmationFlags{}
	return commandSpec{
		flags:         map[string]any{"lane": &in.Lane, "for": &in.For, "calls": &boundedIntFlag{value: &in.Calls, max: ask.MaxCalls}, "client": &in.Client, "tools": &in.Tools, "yes": &said.yes},
		completeFlags: map[string]cobra.CompletionFunc{"tools": r.completeToolsOfServer()},
		run: operationRunFunc(r, api.GrantLease, func(ctx context.Context, _ *api.Client, args []string) (ops.GrantLeaseRequest, error) {
			in.Server = args[0]
			question := fmt.Sprintf("Allow calls of %s to %s up to the lane %s without asking, for %s or %d calls?", cmp.Or(in.Client, "any client"), in.Server+cmp.Or(":"+in.Tools, ""),
				cmp.Or(in.Lane, "write"), cmp.Or(in.For, "15m"), cmp.Or(in.Calls, 20))
			return in, r.requireConfirmation(ctx, said, toOneLine(question), "Give --yes.")
		}, func(p *printer, l ops.LeaseView) {
			p.writeLine("Calls to %s up to the lane %s run without asking until %s, at most %d of them. End it with `mcpproxy lease revoke %s`.", escapeInvisibleLine(l.Server), escapeInvisibleLine(l.Lane), p.formatTime(&l.Until), l.Calls, escapeInvisibleLine(l.ID))
		}),
	}
}

func newLeaseRevokeCommand(r *invocation) commandSpec {
	return commandSpec{complete: r.completeFromDaemon(leaseIDs), run: operationRunFunc(r, api.RevokeLease, func(ctx context.Context, c *api.Client, args []string) (ops.LeaseRef, error) {
		all, err := api.ListLeases.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return ops.LeaseRef{}, err
		}
		id, err := completeIDPrefix(args[0], mapSlice(all.Leases, func(l ops.LeaseView) string { return l.ID }), "leases", "mcpproxy lease list")
		return ops.LeaseRef{ID: id}, err
	}, func(p *printer, l ops.LeaseView) {
		p.writeLine("Revoked the lease. Calls to %s need approval again.", escapeInvisibleLine(l.Server))
	})}
}
