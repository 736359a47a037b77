package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// CallApprovals implements the operations on pending calls and leases.
type CallApprovals struct {
	gateway *Gateway
	pending *store.ApprovalQuestionStore
	waiters *ask.Waiter
	tokens  *auth.AgentTokens
	changed func() // called after an answer, a new lease or a revoked lease
}

// NewCallApprovals returns CallApprovals.
func NewCallApprovals(g *Gateway, s *store.ApprovalQuestionStore, w *ask.Waiter, t *auth.AgentTokens, changed func()) *CallApprovals {
	return &CallApprovals{g, s, w, t, changed}
}

// PendingCall is a call that waits, or waited, for an approval.
type PendingCall struct {
	ID         string            `json:"id"`
	State      ask.QuestionState `json:"state"`
	Name       string            `json:"name" doc:"The tool id: server:tool."`
	Server     string            `json:"server"`
	Tool       string            `json:"tool"`
	Lane       string            `json:"lane" words:"operation" doc:"The lane of the call."`
	LaneReason string            `json:"lane_reason" doc:"Why the call is in this lane."`
	Variant    string            `json:"tool_variant" words:"variant" doc:"The calling tool that was used. For a call by the tool's own name: the calling tool that matches its hints."`
	Rule       string            `json:"rule" doc:"The rule of the configuration that requires approval."`
	Arguments  json.RawMessage   `json:"arguments" doc:"The arguments of the call, with secrets masked. If arguments_truncated is set, a string with their beginning. Null after the decision: the activity record keeps the arguments."`
	Truncated  bool              `json:"arguments_truncated,omitempty"`
	Reason     string            `json:"reason,omitempty" doc:"The reason that the agent declared."`
	Actor      string            `json:"actor"`
	ClientName string            `json:"client_name,omitempty" doc:"The self-reported name of the client. MCPProxy cannot verify it."`
	Version    string            `json:"client_version,omitempty"`
	Source     string            `json:"source" doc:"The surface through which the call was made."`
	AskedAt    time.Time         `json:"asked_at"`
	LastAsked  time.Time         `json:"last_asked_at"`
	Until      time.Time         `json:"until" doc:"The time at which a pending call expires; another attempt of the client extends it. After a decision: the time until which the decision is valid."`
	WaitsUntil *time.Time        `json:"waits_until,omitempty" doc:"The time until which the client waits for the decision, if it is still connected. After that, the client must call again."`
	ActivityID string            `json:"activity_id" doc:"The id of the held call's activity record."`
	AnsweredAt *time.Time        `json:"answered_at,omitempty"`
	AnsweredBy string            `json:"answered_by,omitempty"`
	Answered   string            `json:"answered_via,omitempty" doc:"The surface through which the decision was made; 'client form' if it was made in a form of the calling client. Absent while the call is pending."`
	Denial     string            `json:"denial,omitempty" doc:"The reason of a denial. Absent if none was given."`
}

// PendingList lists the pending calls, oldest first.
type PendingList struct {
	Pending []PendingCall `json:"pending"`
}

// PendingCallRef identifies a pending call.
type PendingCallRef struct {
	ID string `path:"id" doc:"The id of the held call."`
}

// DenyCallRequest denies a pending call.
type DenyCallRequest struct {
	PendingCallRef
	Reason string `json:"reason" doc:"The reason for the agent, at most 2,000 bytes."`
}

// Example returns an example for the OpenAPI document.
func (DenyCallRequest) Example() string { return `{"reason": "Not on a Friday."}` }

// maxListedArguments limits the size of each call's arguments in a list, in bytes.
const maxListedArguments = 4 << 10

// PendingCalls returns the pending calls.
func (c *CallApprovals) PendingCalls(ctx context.Context, by Caller, _ Nothing) (PendingList, error) {
	all, err := c.pending.WaitingQuestions(ctx, time.Now())
	if err != nil {
		return PendingList{}, toPendingStoreProblem(err)
	}
	list := PendingList{[]PendingCall{}}
	for i := range all {
		if !mayAnswer(by, &all[i]) {
			continue
		}
		v := c.pendingCallView(&all[i])
		if len(v.Arguments) > maxListedArguments {
			v.Arguments, v.Truncated = wirejson.AppendString(nil, wirejson.ClipText(string(v.Arguments), maxListedArguments)), true
		}
		list.Pending = append(list.Pending, v)
	}
	return list, nil
}

// mayAnswer reports whether the caller may see and answer a question. A user answers only for its own calls.
func mayAnswer(by Caller, q *ask.Question) bool {
	return !by.Actor.AnswersOnlyOwn() || q.Principal == by.Actor.Principal()
}

// loadQuestion loads a question that the caller may answer. Other questions do not exist for it.
func (c *CallApprovals) loadQuestion(ctx context.Context, by Caller, id string) (ask.Question, error) {
	q, err := c.pending.LoadQuestion(ctx, id)
	if err == nil && !mayAnswer(by, &q) {
		return ask.Question{}, problem.Newf(problem.NotFound, "You have no pending call with the ID '%s'.", problem.ClipName(id)).WithHint("See your pending calls with GET /api/v1/pending.")
	}
	if err != nil {
		err = toPendingStoreProblem(err)
	}
	return q, err
}

// countTimeout limits how long CountPendingAndLeases waits for the database.
const countTimeout = time.Second

// CountPendingAndLeases counts the pending calls and the leases. After a database error, the counts are zero.
func (c *CallApprovals) CountPendingAndLeases(ctx context.Context) (n StatusHeld) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	n.Pending, _ = c.pending.CountWaitingQuestions(ctx, time.Now())
	all, _ := c.Leases(ctx, Caller{Actor: auth.Actor{Kind: auth.Admin}}, Nothing{})
	n.Leases = len(all.Leases)
	return n
}

// PendingCall returns one call that waits, or waited, for an approval.
func (c *CallApprovals) PendingCall(ctx context.Context, by Caller, in PendingCallRef) (PendingCall, error) {
	q, err := c.loadQuestion(ctx, by, in.ID)
	if err != nil {
		return PendingCall{}, err
	}
	return c.pendingCallView(&q), nil
}

// ApproveCall approves this exact call once. A call with any difference needs its own approval.
func (c *CallApprovals) ApproveCall(ctx context.Context, by Caller, in PendingCallRef) (PendingCall, error) {
	return c.answerByUser(ctx, by, in.ID, ask.Answer{Approve: true})
}

// DenyCall denies the call, and identical calls for 15 minutes.
func (c *CallApprovals) DenyCall(ctx context.Context, by Caller, in DenyCallRequest) (PendingCall, error) {
	if len(in.Reason) > ask.MaxReason {
		return PendingCall{}, problem.Newf(problem.InvalidParameter, "The reason has %d bytes, but the limit is %d.", len(in.Reason), ask.MaxReason).
			WithHint("Shorten it.").With("parameter", "reason")
	}
	return c.answerByUser(ctx, by, in.ID, ask.Answer{Why: in.Reason})
}

// answerByUser applies a user's answer to the question about a pending call. It rejects callers that are not users.
func (c *CallApprovals) answerByUser(ctx context.Context, by Caller, id string, a ask.Answer) (PendingCall, error) {
	q, err := c.loadQuestion(ctx, by, id)
	if err != nil {
		return PendingCall{}, err
	}
	a.Via = string(by.Source)
	return c.applyAnswer(ctx, by, &q, a, c.gateway.runUserAction)
}

// AnswerByClient applies the answer from a form that the calling client showed. k is the key of the call. Any client
// may deny its own call. Only a client whose token is listed in ask.answer_by_client may approve it.
func (c *CallApprovals) AnswerByClient(ctx context.Context, by auth.Caller, id string, k ask.CallKey, a ask.Answer) error {
	q, err := c.pending.LoadQuestion(ctx, id)
	switch {
	case err != nil:
		return toPendingStoreProblem(err)
	case q.Key != k:
		return problem.Newf(problem.Conflict, "The question %s belongs to another call.", problem.ClipName(id)).WithHint("Answer each call separately.")
	}
	act := c.gateway.runUserAction // rejects an actor that is not a user
	if !a.Approve || c.gateway.Config().ClientMayApprove(by.Actor.TokenName()) {
		act = func(_ Caller, r activity.Record, do func() error) error { return c.gateway.runAndRecord(r, do) }
	}
	a.Via = ask.ByForm
	_, err = c.applyAnswer(ctx, by, &q, a, act)
	return err
}

// applyAnswer applies an answer to a question inside act, which records it.
func (c *CallApprovals) applyAnswer(ctx context.Context, by Caller, q *ask.Question, a ask.Answer, act func(Caller, activity.Record, func() error) error) (view PendingCall, err error) {
	at, _ := c.gateway.Presence.DraftTimeAndNonce(ctx)
	a.By, a.At = by.Actor.String(), at
	action, detail := "deny_call", q.ID+", "+a.At.Sub(q.Asked).Round(time.Second).String()+" after it was asked"
	if a.Approve {
		action = "approve_call"
	}
	if a.Via == ask.ByForm {
		detail += ", by the client's form"
	}
	if a.Why != "" {
		detail += ": " + a.Why
	}
	record := newActionRecord(by, activity.Approval, q.Call.ID, action, detail)
	record.ParentID = q.Record
	return view, act(by, record, func() error {
		if a.Approve {
			if err := c.requirePresence(ctx, *q, a); err != nil {
				return err
			}
		}
		answered, err := c.pending.AnswerQuestion(ctx, q.ID, a)
		if err != nil {
			return toPendingStoreProblem(err)
		}
		view = c.pendingCallView(&answered)
		c.waiters.WakeCalls(answered.Key)
		c.changed()
		return nil
	})
}

// requirePresence requires proof of presence if the answer approves the call and the question still waits.
func (c *CallApprovals) requirePresence(ctx context.Context, q ask.Question, a ask.Answer) error {
	if p := q.RecordAnswer(a); p != nil {
		return p
	}
	return c.gateway.Presence.RequireSigned(ctx, ask.CallClaim(q.ID, q.Until, &q))
}

// toPendingStoreProblem returns err unchanged if it has a problem code, otherwise a problem that the store is
// unavailable.
func toPendingStoreProblem(err error) error {
	if p := problem.From(err); p.Code != problem.Internal {
		return p
	}
	return problem.New(problem.ServerUnavailable, "The pending calls cannot be read or stored now.", "Try again in a moment; see `mcpproxy status`.").Because(err)
}

func (c *CallApprovals) pendingCallView(q *ask.Question) PendingCall {
	state, waits := q.StateAt(time.Now()), time.Time{}
	if state == ask.Waiting {
		waits = q.Last.Add(c.gateway.Config().AskTimeout(q.Server))
	}
	return PendingCall{
		ID: q.ID, State: state, WaitsUntil: timeOrNil(waits), Name: q.Call.ID.String(), Server: q.Server, Tool: q.Tool, Lane: q.Lane, LaneReason: q.Because, Variant: q.Variant, Rule: q.Rule,
		Arguments: q.Shown, Truncated: q.Cut, Reason: q.Reason, Actor: q.Actor, ClientName: q.Client, Version: q.ClientVersion, Source: q.Source,
		AskedAt: q.Asked, LastAsked: q.Last, Until: q.Until, ActivityID: q.Record,
		AnsweredAt: timeOrNil(q.Answered), AnsweredBy: q.By, Answered: q.Via, Denial: q.Why,
	}
}

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
func (c *CallApprovals) Leases(ctx context.Context, by Caller, _ Nothing) (LeaseList, error) {
	now := time.Now()
	all, err := c.pending.ActiveLeases(ctx, now)
	if err != nil {
		return LeaseList{}, toPendingStoreProblem(err)
	}
	list := LeaseList{[]LeaseView{}}
	for i := range all {
		if by.Actor.SeesOnlyOwn() && all[i].Actor != by.Actor.Principal() {
			continue
		}
		if v := c.leaseView(&all[i], now); v.Ended == ask.Runs && c.gateway.Presence.HasUsesLeft(ask.LeaseClaim(&all[i]), int(all[i].Calls)) {
			list.Leases = append(list.Leases, v)
		}
	}
	return list, nil
}

// GrantLease grants a lease: calls that it covers need no approval.
func (c *CallApprovals) GrantLease(ctx context.Context, by Caller, in GrantLeaseRequest) (view LeaseView, err error) {
	at, name := c.gateway.Presence.DraftTimeAndNonce(ctx)
	l, err := c.buildLease(ctx, by, in, at)
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
	if by.Actor.SeesOnlyOwn() {
		own, err := c.Leases(ctx, by, Nothing{})
		if err != nil {
			return view, err
		}
		if !slices.ContainsFunc(own.Leases, func(l LeaseView) bool { return l.ID == in.ID }) {
			return view, problem.Newf(problem.NotFound, "You have no lease '%s'.", problem.ClipName(in.ID)).WithHint("See your leases with GET /api/v1/leases.")
		}
	}
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
func (c *CallApprovals) buildLease(ctx context.Context, by Caller, in GrantLeaseRequest, now time.Time) (l ask.Lease, err error) {
	if p := gate.OutOfScopeProblem(&by, in.Server); p != nil && by.Actor.SeesOnlyOwn() {
		return l, p
	}
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
	if own := by.Actor.String(); by.Actor.SeesOnlyOwn() {
		if in.Client != "" && in.Client != own {
			return l, problem.New(problem.Forbidden, "A user can grant a lease only for its own calls.", "Leave out client.")
		}
		l.Client, l.Actor = own, by.Actor.Principal()
		return l, nil
	}
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
