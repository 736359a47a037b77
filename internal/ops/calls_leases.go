package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// GrantLeaseRequest is a request for a lease.
type GrantLeaseRequest struct {
	Server string `json:"server" required:"true" doc:"The server to which the lease applies."`
	Lane   string `json:"lane" enum:"read,write,destructive" doc:"The most harmful lane that the lease covers. Default: write."`
	For    string `json:"for" doc:"The duration of the lease, from 1m to 24h. Default: 15m."`
	Calls  int    `json:"calls" min:"1" max:"10000" doc:"The maximum number of calls. Default: 20."`
	Client string `json:"client" doc:"The name of an agent token. The lease then covers only calls with this token. Default: calls of all clients. The self-reported name of a client is not accepted, because any client can use it."`
	Tools  string `json:"tools" doc:"A name or pattern of tools of the server. Default: all tools."`
}

// Example returns an example for the OpenAPI document.
func (GrantLeaseRequest) Example() string {
	return `{"server": "github", "lane": "write", "for": "15m", "calls": 20}`
}

// LeaseView is an active lease.
type LeaseView struct {
	ID        string        `json:"id"`
	Server    string        `json:"server"`
	Lane      string        `json:"lane" words:"operation" doc:"The most harmful lane that the lease covers."`
	Tools     string        `json:"tools,omitempty" doc:"The name or pattern of the covered tools. Absent if all tools are covered."`
	Client    string        `json:"client,omitempty" doc:"The name of the agent token whose calls are covered. Absent if calls of all clients are covered."`
	Calls     int64         `json:"calls" doc:"The maximum number of calls."`
	CallsLeft int64         `json:"calls_left"`
	GivenAt   time.Time     `json:"given_at"`
	Until     time.Time     `json:"until"`
	GivenBy   string        `json:"given_by"`
	GivenVia  string        `json:"given_via" doc:"The surface through which the lease was granted."`
	Ended     ask.EndReason `json:"ended,omitempty" doc:"Why the lease ended. Absent while it is active."`
}

// LeaseList lists the active leases, sorted by their end.
type LeaseList struct {
	Leases []LeaseView `json:"leases"`
}

// LeaseRef identifies a lease.
type LeaseRef struct {
	ID string `path:"id" doc:"The id of the lease."`
}

// Default values of a lease.
const (
	defaultLane  = auth.Write
	defaultLease = 15 * time.Minute
	defaultCalls = 20
)

// Leases returns the active leases.
func (c *CallApprovals) Leases(ctx context.Context, _ Caller, _ Nothing) (LeaseList, error) {
	now := time.Now()
	all, err := c.pending.ActiveLeases(ctx, now)
	if err != nil {
		return LeaseList{}, toPendingStoreProblem(err)
	}
	list := LeaseList{[]LeaseView{}}
	for i := range all {
		if v := c.leaseView(&all[i], now); v.Ended == ask.Runs && c.gateway.Presence.HasUsesLeft(ask.LeaseClaim(&all[i]), int(all[i].Calls)) {
			list.Leases = append(list.Leases, v)
		}
	}
	return list, nil
}

// GrantLease grants a lease: calls that it covers need no approval.
func (c *CallApprovals) GrantLease(ctx context.Context, by Caller, in GrantLeaseRequest) (view LeaseView, err error) {
	at, name := c.gateway.Presence.DraftTimeAndNonce(ctx)
	l, err := c.buildLease(ctx, in, at)
	if err != nil {
		return view, err
	}
	l.ID, l.By, l.Via = name[:16], by.Actor.String(), string(by.Source)
	detail := fmt.Sprintf("%s: %s, up to %d calls for %s", l.ID, auth.OperationLaneNames()[l.Lane-1], l.Calls, l.Until.Sub(l.Given).Round(time.Second))
	if l.Tools != "" {
		detail += ", tools " + l.Tools
	}
	if l.Client != "" {
		detail += ", client " + l.Client
	}
	return view, c.gateway.runUserAction(by, newActionRecord(by, activity.Approval, tool.ID{Server: l.Server}, "grant_lease", detail), func() error {
		if err := c.gateway.Presence.RequireSigned(ctx, ask.LeaseClaim(&l)); err != nil {
			return err
		}
		if err := c.pending.AddLease(ctx, l); err != nil {
			return toPendingStoreProblem(err)
		}
		view = c.leaseView(&l, l.Given)
		c.waiters.WakeAll() // the lease may cover a waiting call
		c.changed()
		return nil
	})
}

// RevokeLease ends a lease immediately.
func (c *CallApprovals) RevokeLease(ctx context.Context, by Caller, in LeaseRef) (view LeaseView, err error) {
	return view, c.gateway.runUserAction(by, newActionRecord(by, activity.Approval, tool.ID{}, "revoke_lease", problem.ClipName(in.ID)), func() error {
		l, err := c.pending.RevokeLease(ctx, in.ID, time.Now())
		if err != nil {
			return toPendingStoreProblem(err)
		}
		c.gateway.Presence.SpendAllUses(ask.LeaseClaim(&l))
		view = c.leaseView(&l, time.Now())
		c.changed()
		return nil
	})
}

// buildLease validates the input and applies the defaults.
func (c *CallApprovals) buildLease(ctx context.Context, in GrantLeaseRequest, now time.Time) (l ask.Lease, err error) {
	if _, err := c.gateway.findServer(in.Server); err != nil {
		return l, err
	}
	l = ask.Lease{Server: in.Server, Tools: in.Tools, Lane: defaultLane, Client: in.Client, Revision: c.gateway.Config().RevisionWithoutRestartKeys(), Calls: int64(in.Calls), Given: now}
	if in.Calls == 0 {
		l.Calls = defaultCalls
	}
	if l.Left = l.Calls; l.Calls < 0 || l.Calls > ask.MaxCalls {
		return l, invalidLeaseParameterError("calls", fmt.Sprint(in.Calls), fmt.Sprintf("from 1 to %d", ask.MaxCalls))
	}
	if in.Lane != "" {
		var ok bool
		if l.Lane, ok = auth.ParseOperationLane(in.Lane); !ok {
			return l, invalidLeaseParameterError("lane", in.Lane, strings.Join(auth.OperationLaneNames(), ", "))
		}
	}
	life := defaultLease
	if in.For != "" {
		var ok bool
		if life, ok = activity.ParseDuration(in.For); !ok || life < ask.ShortestLease || life > ask.LongestLease {
			return l, invalidLeaseParameterError("for", in.For, "a duration from 1m to 24h, such as 15m or 2h")
		}
	}
	l.Until = now.Add(life)
	if in.Client == "" {
		return l, nil
	}
	token, _, err := c.tokens.LookupByName(ctx, in.Client)
	switch {
	case err != nil:
		return l, problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
	case token == nil || token.HasEnded():
		return l, problem.Newf(problem.NotFound, "The agent token '%s' does not exist, or has expired.", problem.ClipName(in.Client)).
			WithHint("See the tokens with `mcpproxy token list`. The self-reported name of a client is not accepted.").With("parameter", "client")
	}
	l.Actor = token.Principal()
	return l, nil
}

func invalidLeaseParameterError(parameter, value, allowed string) error {
	return problem.Newf(problem.InvalidParameter, "Invalid %s '%s': must be %s", parameter, problem.ClipName(value), allowed).
		WithHint("Use an allowed value, or leave it out.").With("parameter", parameter).With("value", problem.ClipName(value)).With("allowed", allowed)
}

func (c *CallApprovals) leaseView(l *ask.Lease, now time.Time) LeaseView {
	return LeaseView{ID: l.ID, Server: l.Server, Lane: auth.OperationLaneNames()[l.Lane-1], Tools: l.Tools, Client: l.Client, Calls: l.Calls, CallsLeft: l.Left, GivenAt: l.Given,
		Until: l.Until, GivenBy: l.By, GivenVia: l.Via, Ended: l.EndReason(now, c.gateway.Config().RevisionWithoutRestartKeys())}
}
