package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
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

// caught says by which rule of a configuration a person is asked about the call, and what it
// counts as.
func (c *call) caught(cfg *config.Config, t *catalog.Tool, does policy.Arguments) (policy.AskedBy, policy.Operation) {
	within := c.caller.Scope()
	if t == nil || !cfg.MayAsk(t.ID.Server, within) {
		return policy.AskedBy{}, policy.NoOperation
	}
	lane := WorstLane(t, c.policyRequest.Variant, c.policyRequest.OwnNames, &does)
	return cfg.Asks(t.ID, within, lane), lane
}

// errOther is that a call is not any more what a person was asked about.
var errOther = errors.New("what was asked about is something else by now")

// approve has a person asked about a call that is allowed, where a rule says so, and returns when
// the call may go on, or why not.
func (g *Gate) approve(ctx context.Context, c *call) *problem.Problem {
	caught, worst := c.caught(c.cfg, c.tool, c.arguments)
	if !caught.Asked() {
		return nil
	}
	began := time.Now()
	defer func() { c.waited += time.Since(began) }()
	for caught.Asked() {
		c.pending = &pendingApproval{rule: caught, worst: worst, call: ask.Call{
			Principal: c.caller.Actor.Principal(), ID: c.tool.ID, Fingerprint: c.tool.Fingerprint(), Arguments: c.parts.Arguments,
			Revision: c.cfg.SharedRevision(), Variant: c.policyRequest.Variant.String(),
		}}
		if !c.stateless {
			c.pending.call.Session = c.caller.SessionID
		}
		h := g.heldCall(c, max(0, c.cfg.AskTimeout(c.tool.ID.Server)-time.Since(began)))
		if h.Ask = c.asksClient(ctx, &h); c.returned != nil && c.returned.answer != nil {
			c.takeAnswer(ctx, &h, c.returned.question, c.returned.answer)
			c.returned.answer = nil
		}
		pass, err := g.Ask.Hold(ctx, h)
		switch {
		case err == nil:
			c.pending.pass = pass
			return nil
		case !errors.Is(err, errOther):
			p := c.failed(ctx, err)
			if c.decision.Check = policy.Check(c.failedRecheck.Load()); c.decision.Check == policy.NoCheck {
				c.decision.Check = policy.CheckAsk
			} else {
				c.pending.record = "" // the refusal has a record of its own
			}
			if c.pending.pass = pass; p.Code == problem.ApprovalDenied {
				c.pending.record = ""
			}
			return p
		}
		c.pending = nil
		if p := g.decideAgain(c); p != nil {
			return p
		}
		caught, worst = c.caught(c.cfg, c.tool, c.arguments)
	}
	return nil
}

// decideAgain decides about the call as if it came now.
func (g *Gate) decideAgain(c *call) *problem.Problem {
	snapshot := g.Catalog.Current()
	c.cfg, c.tool = g.Config(), snapshot.Tool(c.policyRequest.ID)
	if c.policyRequest.OwnNames && c.tool != nil {
		c.policyRequest.Variant = c.tool.CallWith
	}
	return g.decide(c, snapshot)
}

// heldCall is the call as a person is asked about it.
func (g *Gate) heldCall(c *call, wait time.Duration) ask.HeldCall {
	a := c.pending
	h := ask.HeldCall{Worst: auth.Lane(a.worst), Wait: wait, Begin: func() (string, error) { return g.beginHeld(c) }, End: func(err error) { g.endHeld(c, err) },
		Still: c.still, Tell: c.progressTeller()}
	h.Call, h.Key = a.call, a.call.Key()
	h.Shown, h.Cut = activity.Shown(c.parts.Arguments, ask.MaxArguments)
	if c.seen != nil {
		h.Shown, h.Cut = activity.Shown(c.seen(), ask.MaxArguments)
	}
	h.Lane, h.Because, h.Rule = a.worst.String(), c.because(), a.rule.String()
	h.Reason = redact.Text(c.decision.Intent.Reason)
	h.Actor, h.Source = c.caller.Actor.String(), string(c.caller.Source)
	h.Client, h.ClientVersion = problem.Brief(redact.Text(c.caller.ClientName)), problem.Brief(redact.Text(c.caller.ClientVersion))
	return h
}

// because returns why the call counts as what it does.
func (c *call) because() string {
	lane, does := c.pending.worst, &c.arguments
	switch {
	case does.Operation == lane && does.Word != "":
		return "its arguments say so: " + problem.Brief(redact.Text(does.Word)) + " in " + does.Path
	case does.Operation == lane:
		return "its arguments say so, in " + does.Path
	case c.tool.CallWith.Operation() == lane && !policy.Silent(c.tool.Effective):
		return "its hints say so"
	case c.tool.CallWith.Operation() == lane:
		return "it has no hints, which counts as a write"
	case c.tool.BaseLane() == lane:
		return "it has no hints, and seems so: " + c.tool.Inferred().Reason
	}
	return "it was called with " + c.policyRequest.Variant.String()
}

// beginHeld and endHeld have the call on record as one that is held.
func (g *Gate) beginHeld(c *call) (string, error) {
	g.describe(c, activity.ToolCall, policy.CheckAsk)
	judged := c.recordedDecision
	judged.Outcome = activity.Asked
	c.record.Metadata.Decision, c.record.Metadata.Detail = &judged, c.pending.asks
	if err := g.Log.Begin(&c.record); err != nil {
		return "", err
	}
	c.id, c.pending.record = c.record.ID, c.record.ID
	return c.id, nil
}

func (g *Gate) endHeld(c *call, err error) {
	o := activity.Outcome{Status: activity.Held, Duration: time.Since(c.started)}
	if err != nil {
		p := problem.From(err)
		o.Status, o.ErrorCode, o.ErrorMessage, o.Check = activity.Blocked, string(p.Code), p.Message, policy.CheckAsk.String()
	}
	if err := g.Log.End(c.pending.record, o); err != nil {
		g.Logger.Error("that a call is held could not be recorded", "id", c.pending.record, "error", err)
	}
}

// still returns why the call cannot go on, or errOther where another question has to be
// asked.
func (c *call) still() error {
	c.failedRecheck.Store(uint32(policy.NoCheck))
	t := c.gate.Catalog.Current().Tool(c.policyRequest.ID)
	if t == nil || c.other(c.gate.Config(), t) {
		return errOther
	}
	return c.recheck()
}

// other reports whether the call is not what was asked about, in a configuration and with a
// tool.
func (c *call) other(cfg *config.Config, t *catalog.Tool) bool {
	a := &c.pending.call
	return cfg.SharedRevision() != a.Revision || t.Fingerprint() != a.Fingerprint || c.policyRequest.OwnNames && t.CallWith.String() != a.Variant
}

// consented refuses a call that has waited since, if by now a person would have to be asked,
// or would be asked about something else.
func (c *call) consented(t *catalog.Tool) *problem.Problem {
	cfg := c.gate.Config()
	if cfg == c.cfg && t == c.tool {
		return nil
	}
	if c.pending != nil {
		if !c.other(cfg, t) {
			return nil
		}
	} else if caught, _ := c.caught(cfg, t, c.doesNow(t)); !caught.Asked() {
		return nil
	}
	return problem.Newf(problem.ApprovalPending, "The call of '%s' was not made: while it waited for its turn, something has changed that a person is to be asked about.", c.policyRequest.ID).
		WithHint("Call again with the same arguments: the user is asked then.")
}

// doesNow is what the call does by its arguments, whether anybody has looked before or not.
func (c *call) doesNow(t *catalog.Tool) policy.Arguments {
	if c.supposed || c.policyRequest.ArgsErr != nil {
		return policy.Arguments{}
	}
	return t.ClassifyArguments(c.parts.Arguments)
}

// waitStep is by how much the progress of a call grows that waits for a person. It is small,
// since what the server tells later has to be more, and may begin low.
const waitStep = 1e-6

// progressTeller tells the caller that its call waits; nil where it wants to hear of no progress.
func (c *call) progressTeller() func(waited time.Duration) {
	token := json.RawMessage(wirejson.Find(c.meta(), "progressToken"))
	if say := c.request.Say; say != nil && token != nil {
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
