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

// callRecord is the record of one call.
type callRecord struct {
	record   activity.Record
	decision activity.Decision // as recorded
}

// beginRecord writes the record of a call to the spool. If that fails, the call is not sent.
func (g *Gate) beginRecord(x *execution) error {
	g.fillRecord(&x.audit, &x.call, &x.verdict, x.approval, activity.ToolCall, policy.NoCheck)
	err := g.Log.Begin(&x.audit.record)
	if err != nil {
		took, _ := x.time.elapsed()
		g.notifyObserver(x, x.heldRecordID(), activity.Blocked, string(problem.From(err).Code), took, took)
	}
	return err
}

// endRecord writes the outcome. The gate's own time is the duration without waits.
func (g *Gate) endRecord(x *execution, o *activity.Outcome) {
	id := x.audit.record.ID
	o.Duration, o.Own = x.time.elapsed()
	o.Own = max(1, o.Own)
	g.notifyObserver(x, id, o.Status, o.ErrorCode, o.Duration, o.Own)
	if err := g.Log.End(id, *o); err != nil {
		g.Logger.Error("could not record the outcome of a call", "id", id, "error", err)
	}
}

// rejectCall records a call that was not admitted, unless the record of the held call covers it. It returns the caller's
// answer: the problem, or a form that the client shows.
func (g *Gate) rejectCall(ctx context.Context, x *execution) (session.Reply, CallResult, error) {
	p, id := x.verdict.Problem, x.heldRecordID()
	if id == "" {
		id = g.recordRejection(ctx, x, p)
	} else {
		took, own := x.time.elapsed()
		g.notifyObserver(x, id, activity.Held, string(p.Code), took, own)
	}
	if x.approval != nil && x.approval.formResult != nil && p.Code == problem.ApprovalPending {
		return session.Reply{Result: x.approval.formResult}, CallResult{Result: x.approval.formResult, ActivityID: id}, nil
	}
	return session.Reply{}, CallResult{ActivityID: id}, p
}

// heldRecordID returns the ID of the record of the held call; "" if there is none.
func (x *execution) heldRecordID() string {
	if x.approval == nil {
		return ""
	}
	return x.approval.recordID
}

// recordRejection records a refused call and returns the ID of the record.
func (g *Gate) recordRejection(ctx context.Context, x *execution, p *problem.Problem) string {
	a, request := &x.audit, &x.verdict.request
	g.fillRecord(a, &x.call, &x.verdict, x.approval, activity.PolicyDecision, x.verdict.Check)
	a.record.ErrorMessage = p.Message
	a.record.Metadata.ErrorCode = string(p.Code)
	if p.Code == problem.ApprovalPending {
		a.decision.Outcome = activity.Asked
	}
	took, own := x.time.elapsed()
	a.record.DurationMS, a.record.OwnUS = took.Milliseconds(), max(1, own.Microseconds())
	if request.ID.Server == "" {
		a.record.ToolName = problem.ClipName(request.Name)
	}
	id := g.writeRefusalThrottled(ctx, &a.record)
	g.notifyObserver(x, id, activity.Blocked, string(p.Code), took, own)
	return id
}

// fillRecord fills a record with the facts that are known before the call. refused is the check that refused the
// call, if any.
func (g *Gate) fillRecord(into *callRecord, c *call, v *verdict, a *approvalOutcome, kind activity.Type, refused policy.Check) {
	operation := v.Intent.Operation
	if operation == policy.NoOperation {
		operation = v.request.CallTool.Operation()
	}
	into.decision = g.toRecordDecision(c, v, refused)
	into.record = activity.Record{
		Type:         kind,
		ServerName:   v.request.ID.Server,
		ToolName:     v.request.ID.Tool,
		Arguments:    v.args.recordedJSON(),
		RequestBytes: int64(c.size),
		Metadata: activity.Metadata{
			Intent: &activity.Intent{
				OperationType:   operation.String(),
				DataSensitivity: v.Intent.Sensitivity,
				Reason:          v.Intent.Reason,
			},
			ToolVariant: v.request.CallTool.String(),
			Warnings:    v.Warnings,
			Decision:    &into.decision,
		},
	}
	if a != nil {
		into.decision.Approval, into.record.ParentID = a.pass.ID, a.pass.Record
	}
	if v.InvalidDeclaration {
		into.record.Metadata.Intent.Declared = v.request.Declared.RawParameters()
	}
	into.record.SetCaller(&c.caller)
	if c.DeclaresIntent {
		into.record.Metadata.Search = g.searches.searchThatFound(c.caller.SessionID, v.request.ID)
	}
}

// recordedJSON returns the arguments in the form of the record.
func (a *callArguments) recordedJSON() json.RawMessage {
	if a.recorded != nil {
		return a.recorded
	}
	return a.sent
}

// toRecordDecision returns a decision in the form of the record, with the facts on which it was based.
func (g *Gate) toRecordDecision(c *call, v *verdict, refused policy.Check) activity.Decision {
	d := activity.Decision{
		Outcome: activity.Allowed, Check: refused.String(), Called: activity.CalledByName, Alias: v.request.Alias, Declared: v.request.Declared.HasOperation,
		Status: v.status.String(), Arguments: v.schemaFit, ConfigRevision: v.cfg.Revision(),
	}
	if v.request.ChoosesLane() {
		d.Called = activity.CalledInLane
	}
	switch {
	case refused != policy.NoCheck:
		d.Outcome = activity.Refused
	case len(v.Warnings) > 0:
		d.Outcome = activity.Warned
	}
	if a := &v.argumentEffect; a.Operation != policy.NoOperation {
		d.Lane = &activity.ArgumentLane{Operation: a.Operation.String(), Word: a.Word, By: string(a.By), Argument: a.Path, Declared: a.Declared, Unread: a.Unread}
	}
	if within := c.caller.Scope(); within.IsBounded() {
		d.Profile = within.ProfileNames()
	}
	if v.tool != nil {
		d.DecisionFacts = v.tool.FactsForActivityRecord()
	}
	if v.tool != nil && refused != policy.NoCheck && refused <= policy.CheckCallable {
		for _, s := range g.Catalog.LockReasons(v.tool) { // includes reasons that the first one, or an earlier check, hides
			if word := s.String(); d.Status == "" {
				d.Status = word
			} else if word != d.Status {
				d.Further = append(d.Further, word)
			}
		}
	}
	return d
}

// notifyObserver reports how a call ended.
func (g *Gate) notifyObserver(x *execution, id string, status activity.Status, code string, took, own time.Duration) {
	if g.Observer == nil {
		return
	}
	v := &x.verdict
	o := CallStats{Operation: v.request.CallTool.Operation().String(), Status: status, Code: code, Record: id, Duration: took, Own: own}
	if v.tool != nil {
		o.Server, o.Tool = v.tool.ID.Server, v.tool.ID.Tool
	} else {
		o.Server = g.knownServerName(v.request.ID.Server)
	}
	g.Observer.CallEnded(o, x.trace)
}

// knownServerName returns the name of a server; "" if there is none with this name.
func (g *Gate) knownServerName(server string) string {
	if g.Catalog.Current().Server(server) == nil {
		return ""
	}
	return server
}
