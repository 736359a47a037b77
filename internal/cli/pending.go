package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func writePending(p *printer, all ops.PendingList) {
	if len(all.Pending) == 0 {
		p.note("No call waits for you.")
		return
	}
	t := table{p: p, header: []string{"ID", "TOOL", "COUNTS AS", "WHO", "WAITS", "ARGUMENTS"}, narrow: slices.Concat(
		shorten("ARGUMENTS", 20), leaveOut("WHO"), leaveOut("COUNTS AS"), shorten("TOOL", 16), leaveOut("WAITS"), shorten("ARGUMENTS", 8))}
	for _, q := range all.Pending {
		t.add(visibleLine(q.ID), visibleLine(q.Name), visibleLine(q.Lane), visibleLine(q.Actor), p.age(&q.AskedAt), oneLine(string(q.Arguments)))
	}
	t.write()
	p.note("Look and decide: `mcpproxy pending approve ID`, or `mcpproxy pending deny ID --reason TEXT`.")
}

// writeCall shows a pending call as the question about it.
func writeCall(p *printer, q ops.PendingCall) {
	var f fields
	f.add("Call", visibleLine(q.Name))
	f.add("State", visibleLine(string(q.State)))
	f.add("Counts as", visibleLine(q.Lane)+": "+oneLine(q.LaneReason))
	f.add("Asked by", oneLine(q.Rule))
	f.add("Who", oneLine(strings.TrimSpace(q.Actor+", "+q.Source+" "+q.ClientName+" "+q.Version)))
	if q.Reason != "" {
		f.add("The agent says", oneLine(q.Reason))
	}
	f.add("Waits since", p.moment(&q.AskedAt))
	f.add("Id", visibleLine(q.ID))
	if q.AnsweredAt != nil {
		f.add("Answered", p.moment(q.AnsweredAt)+" by "+oneLine(q.AnsweredBy)+" ("+oneLine(q.Answered)+")")
	}
	if q.Denial != "" {
		f.add("Reason", oneLine(q.Denial))
	}
	f.write(p)
	what := "Arguments:"
	if q.Truncated {
		what = "The beginning of the arguments:"
	}
	p.text("", what)
	p.text("  ", printable(string(q.Arguments)))
}

// findPendingCall finds a pending call by a prefix of its id.
func findPendingCall(ctx context.Context, c *api.Client, begins string) (ops.PendingCall, error) {
	all, err := api.ListPending.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return ops.PendingCall{}, err
	}
	var found []string
	for _, q := range all.Pending {
		if strings.HasPrefix(q.ID, begins) {
			found = append(found, q.ID)
		}
	}
	switch {
	case len(found) > 1 && !slices.Contains(found, begins):
		return ops.PendingCall{}, problem.Newf(problem.Ambiguous, "%d calls that wait begin with '%s'.", len(found), printable(begins)).WithHint("Give more of the id: `mcpproxy pending list`.")
	case len(found) == 1:
		begins = found[0]
	}
	return api.GetPending.Call(ctx, c, ops.PendingCallRef{ID: begins})
}

func pendingShow(r *run) command {
	return command{complete: r.live(pendingIDs), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		q, err := findPendingCall(ctx, c, args[0])
		if err != nil {
			return err
		}
		return r.print(q, func(p *printer) { writeCall(p, q) })
	})}
}

// decidePending shows a pending call, asks, and answers. With --yes the id must be complete, as in the list.
func (r *run) decidePending(ctx context.Context, c *api.Client, id, question string, said consent, answer func(id string) (ops.PendingCall, error), done string) error {
	q, err := findPendingCall(ctx, c, id)
	if err != nil {
		return err
	}
	if q.State == ask.Waiting && !said.yes {
		writeCall(r.printer(r.Stderr), q)
	}
	if err := r.confirm(ctx, said, question, "Look at it with `mcpproxy pending show "+q.ID+"`, then give --yes."); err != nil {
		return err
	}
	after, err := answer(q.ID)
	if err != nil {
		return err
	}
	return r.print(after, func(p *printer) { p.line("%s", fmt.Sprintf(done, visibleLine(after.Name))) })
}

func pendingApprove(r *run) command {
	var said consent
	return command{flags: map[string]any{"yes": &said.yes}, complete: r.live(pendingIDs), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		return r.decidePending(ctx, c, args[0], "Approve this call, once?", said, func(id string) (ops.PendingCall, error) {
			return api.ApproveCall.Call(ctx, c, ops.PendingCallRef{ID: id})
		}, "Approved: %s may be called with these arguments, once, within 15 minutes.")
	})}
}

func pendingDeny(r *run) command {
	var said consent
	in := ops.DenyCallRequest{}
	return command{flags: map[string]any{"yes": &said.yes, "reason": &in.Reason}, complete: r.live(pendingIDs), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		said.yes = said.yes || in.Reason != "" // a reason implies that the user has looked
		return r.decidePending(ctx, c, args[0], "Deny this call?", said, func(id string) (ops.PendingCall, error) {
			in.ID = id
			return api.DenyCall.Call(ctx, c, in)
		}, "Denied: the same call of %s is refused for 15 minutes.")
	})}
}

// pendingIDs completes the ids of pending calls.
func pendingIDs(ctx context.Context, c *api.Client, _ string) []string {
	all, _ := api.ListPending.Call(ctx, c, ops.Nothing{})
	return mapStrings(all.Pending, func(q ops.PendingCall) string { return q.ID })
}

func writeLeases(p *printer, all ops.LeaseList) {
	if len(all.Leases) == 0 {
		p.note("No lease runs. Give one with `mcpproxy lease grant SERVER`.")
		return
	}
	t := table{p: p, header: []string{"ID", "SERVER", "UP TO", "TOOLS", "WHO", "CALLS LEFT", "UNTIL"}, right: map[int]bool{5: true}, narrow: slices.Concat(
		leaveOut("WHO"), shorten("TOOLS", 12), leaveOut("TOOLS"), shorten("SERVER", 8))}
	for _, l := range all.Leases {
		t.add(visibleLine(l.ID), visibleLine(l.Server), visibleLine(l.Lane), oneLine(cmp.Or(l.Tools, "all")), visibleLine(cmp.Or(l.Client, "everybody")),
			strconv.FormatInt(l.CallsLeft, 10)+" of "+strconv.FormatInt(l.Calls, 10), p.moment(&l.Until))
	}
	t.write()
}

func leaseGrant(r *run) command {
	in, said := ops.GrantLeaseRequest{}, consent{}
	return command{
		flags: map[string]any{"lane": &in.Lane, "for": &in.For, "calls": &atMostFlag{to: &in.Calls, most: ask.MaxCalls}, "client": &in.Client, "tools": &in.Tools, "yes": &said.yes},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			in.Server = args[0]
			question := fmt.Sprintf("Not ask about calls of %s to %s that are up to %s, for %s or %d calls?", cmp.Or(in.Client, "everybody"), in.Server+cmp.Or(":"+in.Tools, ""),
				cmp.Or(in.Lane, "write"), cmp.Or(in.For, "15m"), cmp.Or(in.Calls, 20))
			if err := r.confirm(ctx, said, oneLine(question), "Give --yes."); err != nil {
				return err
			}
			l, err := api.GrantLease.Call(ctx, c, in)
			if err != nil {
				return err
			}
			return r.print(l, func(p *printer) {
				p.line("Calls to %s up to %s are not asked about until %s, or %d of them. End it with `mcpproxy lease revoke %s`.", visibleLine(l.Server), visibleLine(l.Lane), p.moment(&l.Until), l.Calls, visibleLine(l.ID))
			})
		}),
	}
}

func leaseRevoke(r *run) command {
	return command{complete: r.live(leaseIDs), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		all, err := api.ListLeases.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		id := args[0]
		var found []string
		for _, l := range all.Leases {
			if strings.HasPrefix(l.ID, id) {
				found = append(found, l.ID)
			}
		}
		if len(found) == 1 {
			id = found[0]
		}
		l, err := api.RevokeLease.Call(ctx, c, ops.LeaseRef{ID: id})
		if err != nil {
			return err
		}
		return r.print(l, func(p *printer) { p.line("Revoked: calls to %s are asked about again.", visibleLine(l.Server)) })
	})}
}

// leaseIDs completes the ids of leases.
func leaseIDs(ctx context.Context, c *api.Client, _ string) []string {
	all, _ := api.ListLeases.Call(ctx, c, ops.Nothing{})
	return mapStrings(all.Leases, func(l ops.LeaseView) string { return l.ID })
}
