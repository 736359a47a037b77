package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
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

// foreign says whether a task is somebody else's.
func (t *tasks) foreign(server string, id []byte, principal string) bool {
	text, _ := strictjson.String(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	owners := t.owners[taskKey{server, text}]
	return len(owners) > 0 && !slices.Contains(owners, principal)
}

// The names of tasks in messages.
const (
	tasksPrefix    = "tasks/"
	methodListen   = "subscriptions/listen"
	methodTaskList = "tasks/list"
)

// guardTasks keeps a client from the tasks of others: it refuses a request
// about one, and takes those out of a subscription.
func (g *Gateway) guardTasks(r *RelayRequest) *jsonrpc.Error {
	q := &r.Request
	switch {
	case strings.HasPrefix(q.Method, tasksPrefix):
		if g.tasks.foreign(r.Server, strictjson.Find(q.Params, "taskId"), q.Principal) {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Task not found"}
		}
	case q.Method == methodListen:
		wanted := strictjson.Find(q.Params, "notifications")
		if kept, hidden := g.ownTasks(r, strictjson.Find(wanted, "taskIds"), func(id []byte) []byte { return id }); hidden {
			q.Params = jsonrpc.SetMember(q.Params, "notifications", jsonrpc.SetMember(wanted, "taskIds", kept))
		}
	}
	return nil
}

// ownTasks leaves the tasks of others out of a list; id finds an element's id.
func (g *Gateway) ownTasks(r *RelayRequest, list json.RawMessage, id func([]byte) []byte) (kept json.RawMessage, hidden bool) {
	if strictjson.Kind(list) != '[' {
		return list, false
	}
	var own [][]byte
	_ = strictjson.Elements(list, func(raw []byte) error {
		if g.tasks.foreign(r.Server, id(raw), r.Request.Principal) {
			hidden = true
		} else {
			own = append(own, raw)
		}
		return nil
	})
	return append(append([]byte{'['}, bytes.Join(own, []byte{','})...), ']'), hidden
}

// listedTasks is a result of tasks/list without the tasks of others.
func (g *Gateway) listedTasks(r *RelayRequest, result json.RawMessage) json.RawMessage {
	kept, hidden := g.ownTasks(r, strictjson.Find(result, "tasks"), func(task []byte) []byte { return strictjson.Find(task, "taskId") })
	if !hidden {
		return result
	}
	return jsonrpc.SetMember(result, "tasks", kept)
}

// noteTask remembers the task that a call of a client has become.
func (g *Gateway) noteTask(c *call, result json.RawMessage) {
	if !bytes.Contains(c.passed.Params, []byte("task")) {
		return // the client has not said that it knows any
	}
	if id, ok := taskIn(result); ok {
		g.tasks.begun(c.id.Server, id, c.passed.Principal)
	}
}

// taskIn gives the id of the task that a result stands for in the place of
// content: in the modern revision's form, or the one of 2025-11-25.
func taskIn(result json.RawMessage) (id string, ok bool) {
	if !bytes.Contains(result, []byte(`"taskId"`)) || strictjson.Find(result, "content") != nil {
		return "", false
	}
	if id, ok = strictjson.String(strictjson.Find(strictjson.Find(result, "task"), "taskId")); ok {
		return id, true
	}
	kind, _ := strictjson.String(strictjson.Find(result, "resultType"))
	id, ok = strictjson.String(strictjson.Find(result, "taskId"))
	return id, ok && kind == "task"
}

// unfinished says what a result is that has no content because the call goes on
// elsewhere; "" when it is a result.
func unfinished(result json.RawMessage) string {
	if _, ok := taskIn(result); ok {
		return "a task"
	}
	if bytes.Contains(result, []byte(`"input_required"`)) && strictjson.Find(result, "content") == nil {
		if kind, _ := strictjson.String(strictjson.Find(result, "resultType")); kind == "input_required" {
			return "a question"
		}
	}
	return ""
}

// onlyAsTask says whether a tool, by its definition, is called as a task or not
// at all.
func onlyAsTask(definition json.RawMessage) bool {
	support, _ := strictjson.String(strictjson.Find(strictjson.Find(definition, "execution"), "taskSupport"))
	return support == "required"
}

// taskHint says how a tool that runs as a task is called.
func taskHint(server string) string {
	return "The tool runs as a task, which call_tool_… cannot follow. A client that knows tasks can call it on /mcp/servers/" + server + "."
}

// withoutTasks is a request of a client of all servers as one of a client that
// knows no tasks: their ids say nothing about the server.
func withoutTasks(r *upstream.Request) {
	if r.Method == methodCallTool {
		r.Params = jsonrpc.DropMember(r.Params, "task")
	}
	r.Params = upstream.WithoutTasks(r.Params)
}
