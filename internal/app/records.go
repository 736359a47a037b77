package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
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

// recordSystemEvent records something that the daemon itself did.
func (d *daemon) recordSystemEvent(action, detail string) {
	d.recordEvent(activity.Record{Type: activity.System, Status: activity.Success, Metadata: activity.Metadata{Action: action, Detail: detail}})
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

// serverEventRecorder passes the events of servers to the catalog and records important changes.
type serverEventRecorder struct {
	*catalog.Catalog
	log      *activity.Log
	logger   *slog.Logger
	terminal *terminalHandler

	mu     sync.Mutex // guards phases
	phases map[string]recordedPhase
}

// StateChanged implements upstream.Observer.
func (r *serverEventRecorder) StateChanged(s upstream.State) {
	r.Catalog.StateChanged(s)
	if !r.phaseChanged(s) {
		return
	}
	r.printState(s)
	record := activity.Record{Type: activity.ServerChange, Status: activity.Success, ServerName: s.Name,
		Actor: "system", Metadata: activity.Metadata{Action: string(s.Phase)}}
	if s.Phase == upstream.Failed {
		record.Status, record.ErrorMessage, record.Metadata.ErrorCode = activity.Failed, s.LastError, s.Failure.Code
	}
	if err := r.log.Append(&record); err != nil {
		r.logger.Error("a server's change could not be recorded", "server", s.Name, "error", err)
	}
}

// ToolsListed implements upstream.Observer. It records the changes of a known server's tools by name.
func (r *serverEventRecorder) ToolsListed(server string, tools []*tool.Definition) {
	var was []*catalog.Tool
	known := r.Catalog.Current().Server(server)
	if known != nil {
		was = known.Tools
	}
	r.Catalog.ToolsListed(server, tools)
	detail := toolChangesText(was, tools)
	if detail == "" || known == nil || !known.Listed {
		return
	}
	record := activity.Record{Type: activity.ServerChange, Status: activity.Success, ServerName: server,
		Actor: "system", Metadata: activity.Metadata{Action: "tools_changed", Detail: detail}}
	if err := r.log.Append(&record); err != nil {
		r.logger.Error("a change of a server's tools could not be recorded", "server", server, "error", err)
	}
}

// toolChangesText names the tools that were added (+), removed (-) and changed (~).
func toolChangesText(was []*catalog.Tool, now []*tool.Definition) string {
	before := map[string]json.RawMessage{}
	for _, t := range was {
		before[t.ID.Tool] = t.Raw
	}
	var names []string
	for _, d := range now {
		raw, there := before[d.ID.Tool]
		switch {
		case !there:
			names = append(names, "+"+d.ID.Tool)
		case !bytes.Equal(raw, d.Raw):
			names = append(names, "~"+d.ID.Tool)
		}
		delete(before, d.ID.Tool)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		names = append(names, "-"+name)
	}
	return joinLimited(names)
}

// recordedPhase is the phase in the last record about a server.
type recordedPhase struct {
	upstream.Phase
	needsLogin bool // it failed because it needs a login
}

// phaseChanged reports whether a server became ready, stopped being so, or now fails because it needs a login. Other
// retries do not count.
func (r *serverEventRecorder) phaseChanged(s upstream.State) bool {
	if s.Phase == upstream.Connecting {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phases == nil {
		r.phases = map[string]recordedPhase{}
	}
	was, now := r.phases[s.Name], recordedPhase{s.Phase, s.Phase == upstream.Failed && s.Failure.Code == upstream.LoginNeeded}
	r.phases[s.Name] = now
	return was.Phase != now.Phase || now.needsLogin && !was.needsLogin
}

// maxNamed limits the tools that a record names.
const maxNamed = 20

// joinLimited joins at most maxNamed names.
func joinLimited(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
