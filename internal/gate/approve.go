package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
)

// WorstLane is what a call of a tool counts as where a person is asked: the worst of what
// the tool does by itself and seems to do, of what the arguments do, which takes the place of
// that where a person has said so, and of the variant, where that was the caller's choice.
func WorstLane(t *catalog.Tool, v policy.Variant, ownNames bool, does *policy.Arguments) policy.Operation {
	worst := policy.LaneOf(t.BaseLane(), does)
	if !ownNames {
		worst = max(worst, v.Operation())
	}
	return worst
}

// approval is what approve returns about a call that needed an approval.
type approval struct {
	call   ask.Call
	rule   policy.AskedBy
	worst  policy.Operation // that the call counts as
	asks   string           // how the client itself is asked; "" where it is not
	form   json.RawMessage  // the answer to the call, where its client is asked first
	record string           // of the call that is held; "" where a refusal has its own record
	pass   ask.Pass
}

// askedBy returns the rule that asks for an approval of the call, and what the call counts as.
func (s *subject) askedBy(c *call, does policy.Arguments) (policy.AskedBy, policy.Operation) {
	within := c.caller.Scope()
	if s.tool == nil || !s.cfg.MayAsk(s.tool.ID.Server, within) {
		return policy.AskedBy{}, policy.NoOperation
	}
	lane := WorstLane(s.tool, s.request.Variant, s.request.OwnNames, &does)
	return s.cfg.Asks(s.tool.ID, within, lane), lane
}

// errChanged means that a call is no longer what a user was asked about.
var errChanged = errors.New("what was asked about is something else by now")

// approve holds a call that a rule asks an approval for. It returns the verdict as it is after the
// wait, and the approval; nil where none was needed.
func (g *Gate) approve(ctx context.Context, c *call, v verdict, t *stopwatch) (verdict, *approval) {
	if rule, _ := v.askedBy(c, v.does); !rule.Asked() {
		return v, nil
	}
	began := time.Now()
	defer t.wait(began)
	answer := c.returned.answer
	for {
		rule, worst := v.askedBy(c, v.does)
		if !rule.Asked() {
			return v, nil
		}
		h := newHold(g, c, v, rule, worst, t)
		pass, err := h.wait(ctx, answer, max(0, v.cfg.AskTimeout(v.tool.ID.Server)-time.Since(began)))
		switch {
		case err == nil:
			h.approval.pass = pass
			return v, &h.approval
		case !errors.Is(err, errChanged):
			return h.ended(ctx, pass, err), &h.approval
		}
		answer = nil
		now := g.Catalog.Current()
		if v = g.decide(c, v.current(g.Config(), now), now); v.Problem != nil {
			return v, nil
		}
	}
}

// hold is one wait of a call for an approval.
type hold struct {
	gate     *Gate
	call     *call
	verdict  verdict
	approval approval
	recheck  recheck
	time     *stopwatch
	audit    audit // the record of the call as one that is held
}

func newHold(g *Gate, c *call, v verdict, rule policy.AskedBy, worst policy.Operation, t *stopwatch) *hold {
	h := &hold{gate: g, call: c, verdict: v, time: t, approval: approval{rule: rule, worst: worst, call: ask.Call{
		Principal: c.caller.Actor.Principal(), ID: v.tool.ID, Fingerprint: v.tool.Fingerprint(), Arguments: v.args.sent,
		Revision: v.cfg.SharedRevision(), Variant: v.request.Variant.String(),
	}}}
	if !c.stateless {
		h.approval.call.Session = c.caller.SessionID
	}
	h.recheck.of(g, c, &h.verdict, &h.approval)
	return h
}

// wait waits for an answer, or takes the one that the client returned with the call.
func (h *hold) wait(ctx context.Context, answer json.RawMessage, limit time.Duration) (ask.Pass, error) {
	held := h.held(limit)
	held.Ask = h.asksClient(ctx, &held)
	if answer != nil {
		h.takeAnswer(ctx, &held, h.call.returned.question, answer)
	}
	return h.gate.Ask.Hold(ctx, held)
}

// ended returns the verdict about a call that was not approved. A refusal that the wait has on
// record already gets no other record.
func (h *hold) ended(ctx context.Context, pass ask.Pass, err error) verdict {
	p := h.call.failed(ctx, &h.verdict.subject, err)
	check := h.recheck.check()
	if check == policy.NoCheck {
		check = policy.CheckAsk
	} else {
		h.approval.record = ""
	}
	if h.approval.pass = pass; p.Code == problem.ApprovalDenied {
		h.approval.record = ""
	}
	return h.verdict.refused(check, p)
}

// held returns the call as a reviewer is asked about it.
func (h *hold) held(limit time.Duration) ask.HeldCall {
	c, v, a := h.call, &h.verdict, &h.approval
	out := ask.HeldCall{Worst: auth.Lane(a.worst), Wait: limit, Begin: h.begin, End: h.end, Still: h.still, Tell: c.progressTeller()}
	out.Call, out.Key = a.call, a.call.Key()
	out.Shown, out.Cut = activity.Shown(v.args.sent, ask.MaxArguments)
	if v.args.shown != nil {
		out.Shown, out.Cut = activity.Shown(v.args.shown(), ask.MaxArguments)
	}
	out.Lane, out.Because, out.Rule = a.worst.String(), h.because(), a.rule.String()
	out.Reason = redact.Text(v.Intent.Reason)
	out.Actor, out.Source = c.caller.Actor.String(), string(c.caller.Source)
	out.Client, out.ClientVersion = problem.ClipName(redact.Text(c.caller.ClientName)), problem.ClipName(redact.Text(c.caller.ClientVersion))
	return out
}

// because returns why the call counts as what it does.
func (h *hold) because() string {
	lane, v := h.approval.worst, &h.verdict
	switch {
	case v.does.Operation == lane && v.does.Word != "":
		return "its arguments say so: " + problem.ClipName(redact.Text(v.does.Word)) + " in " + v.does.Path
	case v.does.Operation == lane:
		return "its arguments say so, in " + v.does.Path
	case v.tool.CallWith.Operation() == lane && !policy.Silent(v.tool.Effective):
		return "its hints say so"
	case v.tool.CallWith.Operation() == lane:
		return "it has no hints, which counts as a write"
	case v.tool.BaseLane() == lane:
		return "it has no hints, and seems so: " + v.tool.Inferred().Reason
	}
	return "it was called with " + v.request.Variant.String()
}

// begin writes the record of the call as one that is held, and end its outcome.
func (h *hold) begin() (string, error) {
	h.gate.describe(&h.audit, h.call, &h.verdict, &h.approval, activity.ToolCall, policy.CheckAsk)
	h.audit.decision.Outcome, h.audit.record.Metadata.Detail = activity.Asked, h.approval.asks
	if err := h.gate.Log.Begin(&h.audit.record); err != nil {
		return "", err
	}
	h.approval.record = h.audit.record.ID
	return h.approval.record, nil
}

func (h *hold) end(err error) {
	o := activity.Outcome{Status: activity.Held, Duration: time.Since(h.time.started)}
	if err != nil {
		p := problem.From(err)
		o.Status, o.ErrorCode, o.ErrorMessage, o.Check = activity.Blocked, string(p.Code), p.Message, policy.CheckAsk.String()
	}
	if err := h.gate.Log.End(h.approval.record, o); err != nil {
		h.gate.Logger.Error("that a call is held could not be recorded", "id", h.approval.record, "error", err)
	}
}

// still returns why the call cannot go on, or errChanged where another approval is needed.
func (h *hold) still() error {
	h.recheck.failed.Store(uint32(policy.NoCheck))
	id := h.verdict.request.ID
	if t := h.gate.Catalog.Current().Tool(id); t == nil || h.approval.differs(h.gate.Config(), t, h.verdict.request.OwnNames) {
		return errChanged
	}
	return h.recheck.run()
}

// waitStep is by how much the progress of a call grows that waits for a person. It is small,
// since what the server tells later has to be more, and may begin low.
const waitStep = 1e-6

// progressTeller tells the caller that its call waits; nil where it wants to hear of no progress.
func (c *call) progressTeller() func(waited time.Duration) {
	token := json.RawMessage(wirejson.Find(c.sentMeta(), "progressToken"))
	if say := c.say; say != nil && token != nil {
		progress := 0.0
		return func(waited time.Duration) {
			progress += waitStep
			params := strconv.AppendFloat(append(append([]byte(`{"progressToken":`), token...), `,"progress":`...), progress, 'f', -1, 64)
			params = wirejson.AppendString(append(params, `,"message":`...), "Waiting for the user's approval: "+waited.Round(time.Second).String())
			say(session.Event{Method: mcp.Progress, Params: append(params, '}')})
		}
	}
	return nil
}
