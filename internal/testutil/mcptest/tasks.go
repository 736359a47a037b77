package mcptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// NewTaskServer returns a server whose tools run as tasks: the tasks of 2025-11-25, or, if modern, those of the extension
// io.modelcontextprotocol/tasks. A task's name is the argument id. Its state advances when a client reads it, so that the same
// requests get the same responses. With the argument ask, it requests input once.
//
//	work   runs as a task or directly, and returns its id and the input that it received
//	must   runs only as a task
func NewTaskServer(modern bool) *Server {
	t := &taskServer{modern: modern, byID: map[string]*task{}, listens: map[string]map[*Call]bool{}}
	tools := []Tool{
		{Definition: `{"name":"work","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}`, Handle: t.handleToolCall},
		{Definition: `{"name":"must","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"required"}}`, Handle: t.handleToolCall},
	}
	capabilities := `{"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`
	if modern {
		capabilities = `{"tools":{"listChanged":true},"extensions":{"` + tasksExtension + `":{}}}`
	}
	return New(Options{Modern: modern, Capabilities: capabilities, Other: t.handleRequest}, tools...)
}

const tasksExtension = "io.modelcontextprotocol/tasks"

type taskServer struct {
	modern bool

	mu      sync.Mutex // guards what follows
	byID    map[string]*task
	listens map[string]map[*Call]bool // by the task
}

type task struct {
	id, status string
	ask        bool
	told       json.RawMessage // the text that it received when it asked
	owner      *clientConn
	done       chan struct{} // closed when the task is released or cancelled
}

// formatState returns the task in the form of its protocol revision.
func (t *taskServer) formatState(k *task) string {
	ttl, poll := "ttl", "pollInterval"
	if t.modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	return fmt.Sprintf(`"taskId":%s,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","%s":60000,"%s":9007199254740993,"vendor":1.0`,
		quoteJSON(k.id), k.status, ttl, poll)
}

// formatDetailedState returns the state, in the modern protocol with the result or the input requests of the task.
func (t *taskServer) formatDetailedState(k *task) string {
	switch {
	case !t.modern:
	case k.status == "completed":
		return t.formatState(k) + `,"result":` + k.formatResult()
	case k.status == "input_required":
		return t.formatState(k) + `,"inputRequests":{"q":{"method":"elicitation/create","params":` + k.formatQuestion("") + `}}`
	}
	return t.formatState(k)
}

func (k *task) formatQuestion(meta string) string {
	return `{"message":` + quoteJSON("what about "+k.id) + meta + `,"requestedSchema":{"type":"object","properties":{}}}`
}

func (k *task) formatResult() string {
	told := k.told
	if told == nil {
		told = json.RawMessage("null")
	}
	return `{"content":[{"type":"text","text":` + quoteJSON(k.id) + `}],"told":` + string(told) + `}`
}

func (k *task) relatedTaskMeta() string {
	return `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + quoteJSON(k.id) + `}}`
}

// handleToolCall runs a tool call.
func (t *taskServer) handleToolCall(c *Call) (json.RawMessage, error) {
	id, _ := wirejson.String(wirejson.Find(c.Arguments, "id"))
	ask, _ := wirejson.Bool(wirejson.Find(c.Arguments, "ask"))
	k := &task{id: id, status: "working", ask: ask, owner: c.conn, done: make(chan struct{})}
	wanted := wirejson.Find(c.Params, "task") != nil
	if t.modern {
		wanted = declaresTasks(c)
	}
	switch {
	case !wanted && c.Tool == "must" && t.modern:
		return nil, t.newMissingCapabilityError()
	case !wanted && c.Tool == "must":
		return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "must runs as a task only"}
	case !wanted:
		k.told = json.RawMessage(`"at once"`)
		return json.RawMessage(k.formatResult()), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id] = k
	if t.modern {
		return json.RawMessage(`{"resultType":"task",` + t.formatState(k) + `}`), nil
	}
	return json.RawMessage(`{"task":{` + t.formatState(k) + `},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}`), nil
}

func declaresTasks(c *Call) bool {
	capabilities := wirejson.Find(wirejson.Find(c.Params, "_meta"), "io.modelcontextprotocol/clientCapabilities")
	return wirejson.Find(wirejson.Find(capabilities, "extensions"), tasksExtension) != nil
}

func (t *taskServer) newMissingCapabilityError() error {
	return &wirejson.RPCError{Code: mcp.CodeMissingCapability, Message: "Missing required client capability",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`)}
}

// handleRequest answers tasks/… and subscriptions/listen.
func (t *taskServer) handleRequest(method string, c *Call) (json.RawMessage, error) {
	switch {
	case method == "tasks/list" && !t.modern:
		return t.listTasks(c.conn), nil
	case method == "subscriptions/listen" && t.modern:
		return t.handleListen(c)
	case !slices.Contains(map[bool][]string{true: {"tasks/get", "tasks/update", "tasks/cancel"}, false: {"tasks/get", "tasks/result", "tasks/cancel"}}[t.modern], method):
		return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method}
	case t.modern && !declaresTasks(c):
		return nil, t.newMissingCapabilityError()
	}
	id, _ := wirejson.String(wirejson.Find(c.Params, "taskId"))
	t.mu.Lock()
	k := t.byID[id]
	t.mu.Unlock()
	switch {
	case k == nil || !t.modern && k.owner != c.conn:
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Task not found", Data: json.RawMessage(`{"n":9007199254740993}`)}
	case method == "tasks/get":
		return t.getAndAdvance(k), nil
	case method == "tasks/cancel":
		return t.cancelTask(k)
	case method == "tasks/update":
		t.answerQuestion(k, wirejson.Find(wirejson.Find(c.Params, "inputResponses"), "q"))
		return json.RawMessage(`{"resultType":"complete"}`), nil
	}
	return t.awaitResult(k, c)
}

// getAndAdvance returns the state, and advances the task.
func (t *taskServer) getAndAdvance(k *task) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := "{" + t.formatDetailedState(k) + "}"
	if t.modern {
		out = `{"resultType":"complete",` + t.formatDetailedState(k) + "}"
	}
	switch {
	case k.status == "working" && k.ask && k.told == nil:
		t.setStatus(k, "input_required")
	case k.status == "working":
		t.setStatus(k, "completed")
	}
	return json.RawMessage(out)
}

// setStatus changes the status and notifies listeners. The caller holds the lock.
func (t *taskServer) setStatus(k *task, status string) {
	k.status = status
	if !t.modern {
		k.owner.pushMessage(wirejson.AppendNotification(nil, "notifications/tasks/status", json.RawMessage("{"+t.formatState(k)+"}")))
		return
	}
	for c := range t.listens[k.id] {
		c.Notify("notifications/tasks", json.RawMessage(fmt.Sprintf(`{%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, t.formatDetailedState(k), c.ID)))
	}
}

func (t *taskServer) answerQuestion(k *task, answer json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.status == "input_required" && answer != nil {
		k.told = slices.Clone(answer)
		t.setStatus(k, "working")
	}
}

func (t *taskServer) cancelTask(k *task) (json.RawMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.status == "completed" || k.status == "cancelled" {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Cannot cancel task: already in terminal status '" + k.status + "'"}
	}
	t.setStatus(k, "cancelled")
	close(k.done)
	if t.modern {
		return json.RawMessage(`{"resultType":"complete"}`), nil
	}
	return json.RawMessage("{" + t.formatState(k) + "}"), nil
}

// awaitResult implements tasks/result: it requests input if necessary, and waits for
// the end of the task.
func (t *taskServer) awaitResult(k *task, c *Call) (json.RawMessage, error) {
	t.mu.Lock()
	status := k.status
	t.mu.Unlock()
	switch {
	case status == "input_required":
		answer, err := c.SendRequest("elicitation/create", json.RawMessage(k.formatQuestion(k.relatedTaskMeta())))
		if err != nil {
			return nil, err
		}
		t.answerQuestion(k, answer.Result)
		t.getAndAdvance(k)
	case status == "working":
		select { // until it is cancelled: nothing else moves it on
		case <-k.done:
		case <-c.Context().Done():
			return nil, c.Context().Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.status == "cancelled" {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInternal, Message: "the task was cancelled"}
	}
	result := k.formatResult()
	return json.RawMessage(result[:len(result)-1] + k.relatedTaskMeta() + "}"), nil
}

func (t *taskServer) listTasks(of *clientConn) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := `{"tasks":[`
	for i, id := range slices.Sorted(maps.Keys(t.byID)) {
		if t.byID[id].owner != of {
			continue
		}
		if i > 0 && out[len(out)-1] != '[' {
			out += ","
		}
		out += "{" + t.formatState(t.byID[id]) + "}"
	}
	return json.RawMessage(out + "]}")
}

// handleListen notifies a client about the requested tasks, until the client ends the subscription.
func (t *taskServer) handleListen(c *Call) (json.RawMessage, error) {
	ids := []string{}
	wanted := wirejson.Find(wirejson.Find(c.Params, "notifications"), "taskIds")
	if wanted != nil && !declaresTasks(c) {
		return nil, t.newMissingCapabilityError()
	}
	t.mu.Lock()
	_ = wirejson.EachElement(wanted, func(raw []byte) error {
		if id, _ := wirejson.String(raw); t.byID[id] != nil {
			ids = append(ids, id)
		}
		return nil
	})
	agreed, _ := json.Marshal(ids) // strings can always be encoded
	c.Notify("notifications/subscriptions/acknowledged", json.RawMessage(fmt.Sprintf(
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"taskIds":%s}}`, c.ID, agreed)))
	for _, id := range ids {
		if t.listens[id] == nil {
			t.listens[id] = map[*Call]bool{}
		}
		t.listens[id][c] = true
	}
	t.mu.Unlock()
	<-c.Context().Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.listens[id], c)
	}
	return nil, ErrNoAnswer
}
