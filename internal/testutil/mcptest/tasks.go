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

// NewTasks makes a server whose tools run as tasks: those of 2025-11-25, or,
// modern, those of the extension io.modelcontextprotocol/tasks. A task is named
// after the argument id and moves on when it is looked at, so that the same
// requests get the same answers. With the argument ask it wants input once.
//
//	work   as a task or at once, answers with its id and what it was told
//	must   as a task only
func NewTasks(modern bool) *Server {
	t := &tasks{modern: modern, byID: map[string]*task{}, listens: map[string]map[*Call]bool{}}
	tools := []Tool{
		{Definition: `{"name":"work","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}`, Handle: t.work},
		{Definition: `{"name":"must","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"required"}}`, Handle: t.work},
	}
	capabilities := `{"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`
	if modern {
		capabilities = `{"tools":{"listChanged":true},"extensions":{"` + tasksExtension + `":{}}}`
	}
	return New(Options{Modern: modern, Capabilities: capabilities, Other: t.answer}, tools...)
}

const tasksExtension = "io.modelcontextprotocol/tasks"

type tasks struct {
	modern bool

	mu      sync.Mutex // guards what follows
	byID    map[string]*task
	listens map[string]map[*Call]bool // by the task
}

type task struct {
	id, status string
	ask        bool
	told       json.RawMessage // what it was told when it asked
	owner      *conn
	done       chan struct{} // closed when it is told, or cancelled
}

// state is the task as its revision shows it.
func (t *tasks) state(k *task) string {
	ttl, poll := "ttl", "pollInterval"
	if t.modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	return fmt.Sprintf(`"taskId":%s,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","%s":60000,"%s":9007199254740993,"vendor":1.0`,
		quote(k.id), k.status, ttl, poll)
}

// detailed is the state with what belongs to it in the modern revision.
func (t *tasks) detailed(k *task) string {
	switch {
	case !t.modern:
	case k.status == "completed":
		return t.state(k) + `,"result":` + k.result()
	case k.status == "input_required":
		return t.state(k) + `,"inputRequests":{"q":{"method":"elicitation/create","params":` + k.question("") + `}}`
	}
	return t.state(k)
}

func (k *task) question(meta string) string {
	return `{"message":` + quote("what about "+k.id) + meta + `,"requestedSchema":{"type":"object","properties":{}}}`
}

func (k *task) result() string {
	told := k.told
	if told == nil {
		told = json.RawMessage("null")
	}
	return `{"content":[{"type":"text","text":` + quote(k.id) + `}],"told":` + string(told) + `}`
}

func (k *task) related() string {
	return `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + quote(k.id) + `}}`
}

// work is the call of a tool.
func (t *tasks) work(c *Call) (json.RawMessage, error) {
	id, _ := wirejson.String(wirejson.Find(c.Arguments, "id"))
	ask, _ := wirejson.Bool(wirejson.Find(c.Arguments, "ask"))
	k := &task{id: id, status: "working", ask: ask, owner: c.conn, done: make(chan struct{})}
	wanted := wirejson.Find(c.Params, "task") != nil
	if t.modern {
		wanted = declares(c)
	}
	switch {
	case !wanted && c.Tool == "must" && t.modern:
		return nil, t.undeclared()
	case !wanted && c.Tool == "must":
		return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "must runs as a task only"}
	case !wanted:
		k.told = json.RawMessage(`"at once"`)
		return json.RawMessage(k.result()), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id] = k
	if t.modern {
		return json.RawMessage(`{"resultType":"task",` + t.state(k) + `}`), nil
	}
	return json.RawMessage(`{"task":{` + t.state(k) + `},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}`), nil
}

func declares(c *Call) bool {
	capabilities := wirejson.Find(wirejson.Find(c.Params, "_meta"), "io.modelcontextprotocol/clientCapabilities")
	return wirejson.Find(wirejson.Find(capabilities, "extensions"), tasksExtension) != nil
}

func (t *tasks) undeclared() error {
	return &wirejson.RPCError{Code: mcp.CodeMissingCapability, Message: "Missing required client capability",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`)}
}

// answer answers tasks/… and subscriptions/listen.
func (t *tasks) answer(method string, c *Call) (json.RawMessage, error) {
	switch {
	case method == "tasks/list" && !t.modern:
		return t.list(c.conn), nil
	case method == "subscriptions/listen" && t.modern:
		return t.listen(c)
	case !slices.Contains(map[bool][]string{true: {"tasks/get", "tasks/update", "tasks/cancel"}, false: {"tasks/get", "tasks/result", "tasks/cancel"}}[t.modern], method):
		return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method}
	case t.modern && !declares(c):
		return nil, t.undeclared()
	}
	id, _ := wirejson.String(wirejson.Find(c.Params, "taskId"))
	t.mu.Lock()
	k := t.byID[id]
	t.mu.Unlock()
	switch {
	case k == nil || !t.modern && k.owner != c.conn:
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Task not found", Data: json.RawMessage(`{"n":9007199254740993}`)}
	case method == "tasks/get":
		return t.get(k), nil
	case method == "tasks/cancel":
		return t.cancel(k)
	case method == "tasks/update":
		t.tell(k, wirejson.Find(wirejson.Find(c.Params, "inputResponses"), "q"))
		return json.RawMessage(`{"resultType":"complete"}`), nil
	}
	return t.await(k, c)
}

// get returns the state, and moves the task on.
func (t *tasks) get(k *task) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := "{" + t.detailed(k) + "}"
	if t.modern {
		out = `{"resultType":"complete",` + t.detailed(k) + "}"
	}
	switch {
	case k.status == "working" && k.ask && k.told == nil:
		t.move(k, "input_required")
	case k.status == "working":
		t.move(k, "completed")
	}
	return json.RawMessage(out)
}

// move changes the status and says so. The lock is held.
func (t *tasks) move(k *task, status string) {
	k.status = status
	if !t.modern {
		k.owner.push(wirejson.AppendNotification(nil, "notifications/tasks/status", json.RawMessage("{"+t.state(k)+"}")))
		return
	}
	for c := range t.listens[k.id] {
		c.Notify("notifications/tasks", json.RawMessage(fmt.Sprintf(`{%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, t.detailed(k), c.ID)))
	}
}

func (t *tasks) tell(k *task, answer json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.status == "input_required" && answer != nil {
		k.told = slices.Clone(answer)
		t.move(k, "working")
	}
}

func (t *tasks) cancel(k *task) (json.RawMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.status == "completed" || k.status == "cancelled" {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Cannot cancel task: already in terminal status '" + k.status + "'"}
	}
	t.move(k, "cancelled")
	close(k.done)
	if t.modern {
		return json.RawMessage(`{"resultType":"complete"}`), nil
	}
	return json.RawMessage("{" + t.state(k) + "}"), nil
}

// await is tasks/result: it asks if there is something to ask, and waits for
// the end.
func (t *tasks) await(k *task, c *Call) (json.RawMessage, error) {
	t.mu.Lock()
	status := k.status
	t.mu.Unlock()
	switch {
	case status == "input_required":
		answer, err := c.Ask("elicitation/create", json.RawMessage(k.question(k.related())))
		if err != nil {
			return nil, err
		}
		t.tell(k, answer.Result)
		t.get(k)
	case status == "working":
		select { // until it is cancelled: nobody moves it on
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
	result := k.result()
	return json.RawMessage(result[:len(result)-1] + k.related() + "}"), nil
}

func (t *tasks) list(of *conn) json.RawMessage {
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
		out += "{" + t.state(t.byID[id]) + "}"
	}
	return json.RawMessage(out + "]}")
}

// listen tells of the tasks that are asked for, until the client has enough.
func (t *tasks) listen(c *Call) (json.RawMessage, error) {
	ids := []string{}
	wanted := wirejson.Find(wirejson.Find(c.Params, "notifications"), "taskIds")
	if wanted != nil && !declares(c) {
		return nil, t.undeclared()
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
