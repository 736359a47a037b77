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

// WorstLane returns the lane of a call for approvals. It is the most dangerous lane according to the hints (declared
// or inferred), the arguments, and the call tool if the caller chose it. The arguments replace the hints if a user
// has configured that.
func WorstLane(t *catalog.Tool, r *policy.CallRequest, does *policy.ArgumentEffect) policy.Operation {
	worst := policy.LaneWithArguments(t.BaseOperationLane(), does)
	if r.ChoosesLane() {
		worst = max(worst, r.CallTool.Operation())
	}
	return worst
}

// approvalOutcome is the result of awaitApproval for a call that needed an approval.
type approvalOutcome struct {
	call           ask.Call
	rule           policy.ApprovalRule
	lane           policy.Operation // the lane of the call
	clientFormText string           // how the client itself is asked; "" if it is not asked
	formResult     json.RawMessage  // the reply to the call if its client is asked first
	recordID       string           // record of the held call; "" if a refusal has its own record
	pass           ask.Approval
}

// approvalRule returns the rule that requires an approval of the call, and the lane of the call.
func (s *resolvedCall) approvalRule(c *call, does policy.ArgumentEffect) (policy.ApprovalRule, policy.Operation) {
	within := c.caller.Scope()
	if s.tool == nil || !s.cfg.MayAskUser(s.tool.ID.Server, within) {
		return policy.ApprovalRule{}, policy.NoOperation
	}
	lane := WorstLane(s.tool, &s.request, &does)
	return s.cfg.AskRuleFor(s.tool.ID, within, lane), lane
}

// errApprovalOutdated means that the call no longer matches the approved question.
var errApprovalOutdated = errors.New("the definition changed after the question")

// awaitApproval waits for an approval if a rule requires one for the call. It returns the verdict after the wait, and
// the approval, which is nil if none was needed.
func (g *Gate) awaitApproval(ctx context.Context, c *call, v verdict, t *stopwatch) (verdict, *approvalOutcome) {
	if rule, _ := v.approvalRule(c, v.argumentEffect); !rule.IsSet() {
		return v, nil
	}
	began := time.Now()
	defer t.addWaitSince(began)
	answer := c.returned.answer
	for {
		rule, worst := v.approvalRule(c, v.argumentEffect)
		if !rule.IsSet() {
			return v, nil
		}
		h := newApprovalWait(g, c, v, rule, worst, t)
		pass, err := h.awaitAnswer(ctx, answer, max(0, v.cfg.AskTimeout(v.tool.ID.Server)-time.Since(began)))
		switch {
		case err == nil:
			h.approval.pass = pass
			return v, &h.approval
		case !errors.Is(err, errApprovalOutdated):
			return h.toRefusal(ctx, pass, err), &h.approval
		}
		answer = nil
		now := g.Catalog.Current()
		if v = g.decide(c, v.withSnapshot(g.Config(), now), now); v.Problem != nil {
			return v, nil
		}
	}
}

// approvalWait is one wait of a call for an approval.
type approvalWait struct {
	gate     *Gate
	call     *call
	verdict  verdict
	approval approvalOutcome
	recheck  rechecker
	time     *stopwatch
	audit    callRecord // the record of the held call
}

// newApprovalWait returns the wait of a call for the approval that a rule requires.
func newApprovalWait(g *Gate, c *call, v verdict, rule policy.ApprovalRule, worst policy.Operation, t *stopwatch) *approvalWait {
	h := &approvalWait{gate: g, call: c, verdict: v, time: t, approval: approvalOutcome{rule: rule, lane: worst, call: ask.Call{
		Principal: c.caller.Actor.Principal(), ID: v.tool.ID, Fingerprint: v.tool.Fingerprint(), Arguments: v.args.sent,
		Revision: v.cfg.RevisionWithoutRestartKeys(), Variant: v.request.CallTool.String(),
	}}}
	if !c.stateless {
		h.approval.call.Session = c.caller.SessionID
	}
	h.recheck.initFor(g, c, &h.verdict, &h.approval)
	return h
}

// awaitAnswer waits for an answer, or uses the one that the client returned with the call.
func (h *approvalWait) awaitAnswer(ctx context.Context, answer json.RawMessage, limit time.Duration) (ask.Approval, error) {
	held := h.toHeldCall(limit)
	held.AskClient = h.newClientAsker(ctx, &held)
	if answer != nil {
		h.storeClientAnswer(ctx, &held, h.call.returned.question, answer)
	}
	return h.gate.Ask.AwaitApproval(ctx, held)
}

// toRefusal returns the verdict about a call that was not approved. A refusal that is already in the record of the held
// call gets no separate record.
func (h *approvalWait) toRefusal(ctx context.Context, pass ask.Approval, err error) verdict {
	p := h.call.failureProblem(ctx, &h.verdict.resolvedCall, err)
	check := h.recheck.failedCheck()
	if check == policy.NoCheck {
		check = policy.CheckAsk
	} else {
		h.approval.recordID = ""
	}
	if h.approval.pass = pass; p.Code == problem.ApprovalDenied {
		h.approval.recordID = ""
	}
	return h.verdict.withRefusal(check, p)
}

// toHeldCall returns the call as a reviewer sees it.
func (h *approvalWait) toHeldCall(limit time.Duration) ask.HeldCall {
	c, v, a := h.call, &h.verdict, &h.approval
	out := ask.HeldCall{CallLane: auth.OperationLane(a.lane), Wait: limit, BeginRecord: h.beginHeldRecord, EndRecord: h.endHeldRecord, Recheck: h.recheckHeld, NotifyWaiting: c.newWaitNotifier("Waiting for the user's approval: ")}
	out.Call, out.Key = a.call, a.call.Key()
	out.Shown, out.Cut = activity.MaskAndCutJSON(v.args.sent, ask.MaxArguments)
	if v.args.shown != nil {
		out.Shown, out.Cut = activity.MaskAndCutJSON(v.args.shown(), ask.MaxArguments)
	}
	out.Lane, out.Because, out.Rule = a.lane.String(), h.laneReasonText(), a.rule.String()
	out.Reason = redact.Text(v.Intent.Reason)
	out.Actor, out.Source = c.caller.Actor.String(), string(c.caller.Source)
	out.Client, out.ClientVersion = problem.ClipName(redact.Text(c.caller.ClientName)), problem.ClipName(redact.Text(c.caller.ClientVersion))
	return out
}

// laneReasonText returns the reason for the lane of the call.
func (h *approvalWait) laneReasonText() string {
	lane, v := h.approval.lane, &h.verdict
	switch {
	case v.argumentEffect.Operation == lane && v.argumentEffect.Word != "":
		return "its argument " + v.argumentEffect.Path + " contains " + problem.ClipName(redact.Text(v.argumentEffect.Word))
	case v.argumentEffect.Operation == lane:
		return "its argument " + v.argumentEffect.Path + " requires it"
	case v.tool.CallWith.Operation() == lane && !policy.HintsUnset(v.tool.Effective):
		return "the tool's hints declare it"
	case v.tool.CallWith.Operation() == lane:
		return "the tool has no hints, so it is treated as a write"
	case v.tool.BaseOperationLane() == lane:
		return "the tool has no hints; this lane is inferred: " + v.tool.InferredOperation().Reason
	}
	return "it was called with " + v.request.CallTool.String()
}

// beginHeldRecord writes the record of the held call.
func (h *approvalWait) beginHeldRecord() (string, error) {
	h.gate.fillRecord(&h.audit, h.call, &h.verdict, &h.approval, activity.ToolCall, policy.CheckAsk)
	h.audit.decision.Outcome, h.audit.record.Metadata.Detail = activity.Asked, h.approval.clientFormText
	if err := h.gate.Log.Begin(&h.audit.record); err != nil {
		return "", err
	}
	h.approval.recordID = h.audit.record.ID
	return h.approval.recordID, nil
}

// endHeldRecord writes the outcome of the held call.
func (h *approvalWait) endHeldRecord(err error) {
	o := activity.Outcome{Status: activity.Held, Duration: time.Since(h.time.started)}
	if err != nil {
		p := problem.From(err)
		o.Status, o.ErrorCode, o.ErrorMessage, o.Check = activity.Blocked, string(p.Code), p.Message, policy.CheckAsk.String()
	}
	if err := h.gate.Log.End(h.approval.recordID, o); err != nil {
		h.gate.Logger.Error("could not record that a call is held", "id", h.approval.recordID, "error", err)
	}
}

// recheckHeld returns an error if the call cannot continue, and errApprovalOutdated if it needs another approval.
func (h *approvalWait) recheckHeld() error {
	h.recheck.failed.Store(uint32(policy.NoCheck))
	id := h.verdict.request.ID
	if t := h.gate.Catalog.Current().Tool(id); t == nil || h.approval.isOutdated(h.gate.Config(), t, &h.verdict.request) {
		return errApprovalOutdated
	}
	return h.recheck.decideAgain()
}

// waitStep is the increment of the progress of a call that waits for a user. It is small, because progress must
// increase and the server's progress may begin with a low value.
const waitStep = 1e-6

// newWaitNotifier returns a function that notifies the caller of the wait, with text and the time waited; nil if the
// caller did not request progress.
func (c *call) newWaitNotifier(text string) func(waited time.Duration) {
	token := json.RawMessage(wirejson.Find(c.clientMeta(), "progressToken"))
	if say := c.say; say != nil && token != nil {
		progress := 0.0
		return func(waited time.Duration) {
			progress += waitStep
			params := strconv.AppendFloat(append(append([]byte(`{"progressToken":`), token...), `,"progress":`...), progress, 'f', -1, 64)
			params = wirejson.AppendString(append(params, `,"message":`...), text+waited.Round(time.Second).String())
			say(session.Event{Method: mcp.Progress, Params: append(params, '}')})
		}
	}
	return nil
}
