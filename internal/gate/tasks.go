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

// Bounds on what is remembered of tasks.
const (
	maxTasks  = 10_000
	maxTaskID = 1 << 10 // bytes; a longer one is not remembered
)

// tasks remembers for whom the tasks of servers were begun. A server sees one
// client, us: that a task is nobody else's it cannot hold by itself. What is
// not remembered, because it is long ago or MCPProxy was started anew, is the
// server's to judge.
type tasks struct {
	mu     sync.Mutex           // guards what follows
	owners map[taskKey][]string // several where a server gives an id twice
	order  []taskKey            // a ring, the oldest at next when it is full
	next   int
}

type taskKey struct{ server, id string }

func newTasks() *tasks { return &tasks{owners: map[taskKey][]string{}} }

func (t *tasks) begun(server, id, principal string) {
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

// foreign reports whether a task is somebody else's.
func (t *tasks) foreign(server string, id []byte, principal string) bool {
	text, _ := wirejson.String(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	owners := t.owners[taskKey{server, text}]
	return len(owners) > 0 && !slices.Contains(owners, principal)
}

// guard keeps a client from the tasks of others: it refuses a request about one,
// and takes those out of a subscription.
func (t *tasks) guard(server string, r *session.Request) (*session.Request, *wirejson.RPCError) {
	switch {
	case strings.HasPrefix(r.Method, mcp.Tasks):
		if t.foreign(server, wirejson.Find(r.Params, "taskId"), r.Caller.Actor.Principal()) {
			return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Task not found"}
		}
	case r.Method == mcp.Listen:
		wanted := wirejson.Find(r.Params, "notifications")
		if kept, hidden := t.own(server, r, wirejson.Find(wanted, "taskIds"), func(id []byte) []byte { return id }); hidden {
			less := *r
			less.Params = wirejson.SetMember(r.Params, "notifications", wirejson.SetMember(wanted, "taskIds", kept))
			return &less, nil
		}
	}
	return r, nil
}

// own leaves the tasks of others out of a list; id finds an element's id.
func (t *tasks) own(server string, r *session.Request, list json.RawMessage, id func([]byte) []byte) (kept json.RawMessage, hidden bool) {
	if wirejson.Kind(list) != '[' {
		return list, false
	}
	principal := r.Caller.Actor.Principal()
	kept, left := wirejson.FilterElements(list, func(_ int, raw []byte) bool { return !t.foreign(server, id(raw), principal) })
	return kept, left > 0
}

// listed is a result of tasks/list without the tasks of others.
func (t *tasks) listed(server string, r *session.Request, result json.RawMessage) json.RawMessage {
	kept, hidden := t.own(server, r, wirejson.Find(result, "tasks"), func(task []byte) []byte { return wirejson.Find(task, "taskId") })
	if !hidden {
		return result
	}
	return wirejson.SetMember(result, "tasks", kept)
}

// taskIn returns the id of the task that a result stands for in the place of
// content: in the modern revision's form, or the one of 2025-11-25.
func taskIn(result json.RawMessage) (id string, ok bool) {
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

// unfinished returns what a result is that has no content because the call goes on
// elsewhere; "" when it is a result.
func unfinished(result json.RawMessage) string {
	if _, ok := taskIn(result); ok {
		return "a task"
	}
	if bytes.Contains(result, []byte(`"input_required"`)) && wirejson.Find(result, "content") == nil {
		if kind, _ := wirejson.String(wirejson.Find(result, "resultType")); kind == "input_required" {
			return "a question"
		}
	}
	return ""
}

// onlyAsTask reports whether a tool, by its definition, is called as a task or not
// at all.
func onlyAsTask(definition json.RawMessage) bool {
	support, _ := wirejson.String(wirejson.Find(wirejson.Find(definition, "execution"), "taskSupport"))
	return support == "required"
}

// taskHint says how a tool that runs as a task is called.
func taskHint(server string) string {
	return "The tool runs as a task, which call_tool_… cannot follow. A client that knows tasks can call it on /mcp/servers/" + server + "."
}
