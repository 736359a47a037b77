package gate

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// audit is the record of one call.
type audit struct {
	record   activity.Record
	decision activity.Decision // of the record
}

// begin writes the record of a call to the spool. Without it the call is not sent.
func (g *Gate) begin(x *execution) error {
	g.describe(&x.audit, &x.call, &x.verdict, x.approval, activity.ToolCall, policy.NoCheck)
	err := g.Log.Begin(&x.audit.record)
	if err != nil {
		took, _ := x.time.read()
		g.observe(x, x.heldRecord(), activity.Blocked, string(problem.From(err).Code), took, took)
	}
	return err
}

// end writes the outcome. The time that the call did not wait is our own.
func (g *Gate) end(x *execution, o *activity.Outcome) {
	id := x.audit.record.ID
	o.Duration, o.Own = x.time.read()
	o.Own = max(1, o.Own)
	g.observe(x, id, o.Status, o.ErrorCode, o.Duration, o.Own)
	if err := g.Log.End(id, *o); err != nil {
		g.Logger.Error("the outcome of a call could not be recorded", "id", id, "error", err)
	}
}

// reject records a call that was not admitted, unless its wait for an approval is on record, and
// returns what its caller gets: the problem, or a form that the client shows.
func (g *Gate) reject(ctx context.Context, x *execution) (session.Reply, Result, error) {
	p, id := x.verdict.Problem, x.heldRecord()
	if id == "" {
		id = g.refuse(ctx, x, p)
	} else {
		took, own := x.time.read()
		g.observe(x, id, activity.Held, string(p.Code), took, own)
	}
	if x.approval != nil && x.approval.form != nil && p.Code == problem.ApprovalPending {
		return session.Reply{Result: x.approval.form}, Result{Result: x.approval.form, ActivityID: id}, nil
	}
	return session.Reply{}, Result{ActivityID: id}, p
}

// heldRecord returns the record of the call as one that was held; "" where there is none.
func (x *execution) heldRecord() string {
	if x.approval == nil {
		return ""
	}
	return x.approval.record
}

// refuse records a refusal and returns the id of the record.
func (g *Gate) refuse(ctx context.Context, x *execution, p *problem.Problem) string {
	a, request := &x.audit, &x.verdict.request
	g.describe(a, &x.call, &x.verdict, x.approval, activity.PolicyDecision, x.verdict.Check)
	a.record.ErrorMessage = p.Message
	a.record.Metadata.ErrorCode = string(p.Code)
	if p.Code == problem.ApprovalPending {
		a.decision.Outcome = activity.Asked
	}
	took, own := x.time.read()
	a.record.DurationMS, a.record.OwnUS = took.Milliseconds(), max(1, own.Microseconds())
	if request.ID.Server == "" {
		a.record.ToolName = problem.ClipName(request.Name)
	}
	id := g.keep(ctx, &a.record)
	g.observe(x, id, activity.Blocked, string(p.Code), took, own)
	return id
}

// describe fills a record with what is known before the call. refused is the check that it has not
// passed, if any.
func (g *Gate) describe(into *audit, c *call, v *verdict, a *approval, kind activity.Type, refused policy.Check) {
	operation := v.Intent.Operation
	if operation == policy.NoOperation {
		operation = v.request.Variant.Operation()
	}
	into.decision = g.decisionOf(c, v, refused)
	into.record = activity.Record{
		Type:         kind,
		ServerName:   v.request.ID.Server,
		ToolName:     v.request.ID.Tool,
		Arguments:    v.args.forRecord(),
		RequestBytes: int64(c.size),
		Metadata: activity.Metadata{
			Intent: &activity.Intent{
				OperationType:   operation.String(),
				DataSensitivity: v.Intent.Sensitivity,
				Reason:          v.Intent.Reason,
			},
			ToolVariant: v.request.Variant.String(),
			Warnings:    v.Warnings,
			Decision:    &into.decision,
		},
	}
	if a != nil {
		into.decision.Approval, into.record.ParentID = a.pass.ID, a.pass.Record
	}
	if v.Unsound {
		into.record.Metadata.Intent.Declared = v.request.Declared.Raw()
	}
	into.record.By(&c.caller)
	if c.Declares {
		into.record.Metadata.Search = g.searches.found(c.caller.SessionID, v.request.ID)
	}
}

// forRecord returns the arguments as the record has them.
func (a *arguments) forRecord() json.RawMessage {
	if a.recorded != nil {
		return a.recorded
	}
	return a.sent
}

// decisionOf returns a decision as the record has it, with the facts that it depended on.
func (g *Gate) decisionOf(c *call, v *verdict, refused policy.Check) activity.Decision {
	d := activity.Decision{
		Outcome: activity.Allowed, Check: refused.String(), Called: activity.ByName, Declared: v.request.Declared.HasOperation,
		Status: v.status.String(), Arguments: v.fit, ConfigRevision: v.cfg.Revision(),
	}
	if c.Declares {
		d.Called = activity.InLane
	}
	switch {
	case refused != policy.NoCheck:
		d.Outcome = activity.Refused
	case len(v.Warnings) > 0:
		d.Outcome = activity.Warned
	}
	if a := &v.does; a.Operation != policy.NoOperation {
		d.Lane = &activity.ArgumentLane{Operation: a.Operation.String(), Word: a.Word, By: string(a.By), Argument: a.Path, Declared: a.Declared, Unread: a.Unread}
	}
	if within := c.caller.Scope(); within.Bounded() {
		d.Profile = within.Profiles()
	}
	if v.tool != nil {
		d.Facts = v.tool.Facts()
	}
	if v.tool != nil && refused != policy.NoCheck && refused <= policy.CheckCallable {
		for _, s := range g.Catalog.LockReasons(v.tool) { // the one that counted hides them, or an earlier check
			if word := s.String(); d.Status == "" {
				d.Status = word
			} else if word != d.Status {
				d.Further = append(d.Further, word)
			}
		}
	}
	return d
}

// observe tells the observer how a call ended.
func (g *Gate) observe(x *execution, id string, status activity.Status, code string, took, own time.Duration) {
	if g.Observer == nil {
		return
	}
	v := &x.verdict
	o := CallStats{Operation: v.request.Variant.Operation().String(), Status: status, Code: code, Record: id, Took: took, Own: own}
	if v.tool != nil {
		o.Server, o.Tool = v.tool.ID.Server, v.tool.ID.Tool
	} else {
		o.Server = g.known(v.request.ID.Server)
	}
	g.Observer.Ended(o, x.trace)
}

// known returns the name of a server; "" when there is none of that name.
func (g *Gate) known(server string) string {
	if g.Catalog.Current().Server(server) == nil {
		return ""
	}
	return server
}
