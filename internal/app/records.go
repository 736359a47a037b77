package app

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/oauth"
)

// recordEvent writes a record that belongs to no call.
func (d *daemon) recordEvent(r activity.Record) {
	if r.Actor == "" {
		r.Actor = "system"
	}
	if err := d.log.Append(&r); err != nil {
		d.logger.Error("an event could not be recorded", "type", r.Type, "action", r.Metadata.Action, "error", err)
	}
}

// recordAcceptedAndHeldDefinitions records which of the definitions that a server listed were accepted, and which wait for approval.
func (d *daemon) recordAcceptedAndHeldDefinitions(a catalog.AdmissionOutcome) {
	d.events.DecisionChanged(a.Server)
	if len(a.Accepted) > 0 {
		d.recordEvent(newEvaluationRecord(a.Server, a.Accepted, activity.Success, "accept_"+pluralKind(a.Kind), a.Trust.AutomaticApproverName()))
	}
	if len(a.Held) > 0 {
		d.terminal.printEvent("%s needs review: %s (%d). Run: mcpproxy approvals", a.Server, pluralKind(a.Kind), len(a.Held))
		d.recordEvent(newEvaluationRecord(a.Server, a.Held, activity.Blocked, "hold_"+pluralKind(a.Kind), "system"))
	}
}

// pluralKind returns a kind as in the actions of records.
func pluralKind(kind tool.DefinitionKind) string {
	if kind == tool.KindInstructions {
		return kind.Label()
	}
	return kind.Label() + "s"
}

// newEvaluationRecord returns one record for the evaluated definitions of a kind.
func newEvaluationRecord(server string, all []approval.Evaluation, status activity.Status, action, actor string) activity.Record {
	names := make([]string, 0, len(all))
	for _, j := range all {
		name := j.Tool
		if j.Kind == tool.KindInstructions {
			name = "the instructions"
		}
		if j.Why != "" {
			name += " (" + string(j.Why)
			if len(j.Loosened) > 0 {
				name += ", loosens " + strings.Join(j.Loosened, ", ")
			}
			name += ")"
		}
		names = append(names, name)
	}
	r := activity.Record{Type: activity.Approval, Status: status, ServerName: server, Actor: actor,
		Metadata: activity.Metadata{Action: action, Detail: fmt.Sprintf("%d: %s", len(names), joinLimited(names))}}
	if len(all) == 1 && all[0].Kind == tool.KindTool {
		r.ToolName = all[0].Tool
	}
	return r
}

// recordConfigChange records a change of the configuration.
func (d *daemon) recordConfigChange(c config.Change) {
	d.events.ConfigChanged(slices.Concat(c.Keys, c.Unconfirmed), c.Err)
	r := activity.Record{Type: activity.ConfigChange, Status: activity.Success,
		Metadata: activity.Metadata{Action: "reload", Detail: strings.Join(c.Keys, ", ")}}
	if c.Unconfirmed != nil {
		r.Status, r.ErrorMessage = activity.Blocked, "Changes in the file that grant more access wait for confirmation."
		r.Metadata = activity.Metadata{Action: "edit_waits", Detail: problem.ClipName(strings.Join(c.Unconfirmed, ", ")), ErrorCode: string(problem.PresenceRequired)}
	}
	if c.Err != nil {
		r.Status, r.ErrorMessage = activity.Failed, c.Err.Error()
		r.Metadata.ErrorCode = string(problem.From(c.Err).Code)
	}
	d.recordEvent(r)
}

// announceLogin announces and records that a login has changed. A call that waits for the login has no record of its
// failure that could announce it.
func (d *daemon) announceLogin(server string, e oauth.LoginEvent) {
	d.events.LoginChanged(server, e)
	if e != oauth.EventNeeded {
		return
	}
	d.recordEvent(activity.Record{Type: activity.ServerChange, Status: activity.Failed, ServerName: server,
		Metadata: activity.Metadata{Action: "login_needed", ErrorCode: string(problem.LoginNeeded)}})
}
