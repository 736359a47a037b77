package gate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// The limits of remembered tasks.
const (
	maxTasks  = 10_000
	maxTaskID = 1 << 10 // bytes; a task with a longer ID is not remembered
)

// taskOwners remembers which actor began a task of a server. The server sees only one client, MCPProxy, and cannot
// separate the tasks of different actors. A task that is not remembered, because it is old or MCPProxy was restarted,
// has no owner.
type taskOwners struct {
	mu     sync.Mutex           // guards the following fields
	owners map[taskKey][]string // several if a server uses an ID twice
	order  []taskKey            // a ring buffer; when full, the oldest is at next
	next   int
}

type taskKey struct{ server, id string }

func newTaskOwners() *taskOwners { return &taskOwners{owners: map[taskKey][]string{}} }

// recordOwner stores that an actor began a task.
func (t *taskOwners) recordOwner(server, id, principal string) {
	if id == "" || len(id) > maxTaskID {
		return
	}
	k := taskKey{server, id}
	t.mu.Lock()
	defer t.mu.Unlock()
	owners, known := t.owners[k]
	if !slices.Contains(owners, principal) {
		t.owners[k] = append(owners, principal)
	}
	if known {
		return
	}
	if len(t.order) < maxTasks {
		t.order = append(t.order, k)
		return
	}
	delete(t.owners, t.order[t.next])
	t.order[t.next] = k
	t.next = (t.next + 1) % maxTasks
}

// isOwnedByOther reports whether only other actors own a task.
func (t *taskOwners) isOwnedByOther(server string, id []byte, principal string) bool {
	text, _ := wirejson.String(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	owners := t.owners[taskKey{server, text}]
	return len(owners) > 0 && !slices.Contains(owners, principal)
}

// restrictToOwn refuses a request about a task of another actor, and removes such tasks from a
// subscription.
func (t *taskOwners) restrictToOwn(server string, r *session.Request) (*session.Request, *wirejson.RPCError) {
	switch {
	case strings.HasPrefix(r.Method, mcp.Tasks):
		if t.isOwnedByOther(server, wirejson.Find(r.Params, "taskId"), r.Caller.Actor.Principal()) {
			return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Task not found"}
		}
	case r.Method == mcp.Listen:
		wanted := wirejson.Find(r.Params, "notifications")
		if kept, hidden := t.filterOwn(server, r, wirejson.Find(wanted, "taskIds"), func(id []byte) []byte { return id }); hidden {
			less := *r
			less.Params = wirejson.SetMember(r.Params, "notifications", wirejson.SetMember(wanted, "taskIds", kept))
			return &less, nil
		}
	}
	return r, nil
}

// filterOwn removes the tasks of other actors from a list; id returns the ID of an element.
func (t *taskOwners) filterOwn(server string, r *session.Request, list json.RawMessage, id func([]byte) []byte) (kept json.RawMessage, hidden bool) {
	if wirejson.Kind(list) != '[' {
		return list, false
	}
	principal := r.Caller.Actor.Principal()
	kept, left := wirejson.FilterElements(list, func(_ int, raw []byte) bool { return !t.isOwnedByOther(server, id(raw), principal) })
	return kept, left > 0
}

// filterListResult removes the tasks of other actors from a result of tasks/list.
func (t *taskOwners) filterListResult(server string, r *session.Request, result json.RawMessage) json.RawMessage {
	kept, hidden := t.filterOwn(server, r, wirejson.Find(result, "tasks"), func(task []byte) []byte { return wirejson.Find(task, "taskId") })
	if !hidden {
		return result
	}
	return wirejson.SetMember(result, "tasks", kept)
}

// parseTaskID returns the ID of the task that a result contains instead of content, in the form of the modern
// protocol or of 2025-11-25.
func parseTaskID(result json.RawMessage) (id string, ok bool) {
	if !bytes.Contains(result, []byte(`"taskId"`)) || wirejson.Find(result, "content") != nil {
		return "", false
	}
	if id, ok = wirejson.String(wirejson.Find(wirejson.Find(result, "task"), "taskId")); ok {
		return id, true
	}
	kind, _ := wirejson.String(wirejson.Find(result, "resultType"))
	id, ok = wirejson.String(wirejson.Find(result, "taskId"))
	return id, ok && kind == "task"
}

// unfinishedKindText returns the kind of a result without content, a task or a question; "" for a complete result.
func unfinishedKindText(result json.RawMessage) string {
	if _, ok := parseTaskID(result); ok {
		return "a task"
	}
	if bytes.Contains(result, []byte(`"input_required"`)) && wirejson.Find(result, "content") == nil {
		if kind, _ := wirejson.String(wirejson.Find(result, "resultType")); kind == "input_required" {
			return "a question"
		}
	}
	return ""
}

// requiresTask reports whether a tool, by its definition, can be called only as a task.
func requiresTask(definition json.RawMessage) bool {
	support, _ := wirejson.String(wirejson.Find(wirejson.Find(definition, "execution"), "taskSupport"))
	return support == "required"
}

// taskHint returns how to call a tool that runs as a task.
func taskHint(server string) string {
	return "The tool runs as a task, which call_tool_… cannot follow. A client that knows tasks can call it on /mcp/servers/" + server + "."
}
