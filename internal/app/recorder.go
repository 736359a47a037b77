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
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

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
