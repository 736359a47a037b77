package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// modelAPI is the API of a model as one client uses it.
type modelAPI struct {
	// read returns the names of the tools that a request offers, and the results of the calls so far.
	read func(body []byte) (tools, results []string)
	// write answers with a call of a tool, or with a text if tool is "".
	write func(w io.Writer, n int, tool, arguments string)
}

// scriptedModel replaces the model of a client. It makes one call and keeps the result.
type scriptedModel struct {
	api       modelAPI
	tool      string // the end of the tool's name
	arguments string
	// idleTool is a tool that changes nothing. The model calls it while the client does not offer the tool yet.
	idleTool string

	mu     sync.Mutex
	called string // the full name of the tool, once it was called
	after  int    // number of results before that call
	result string
	tools  []string // offered by the last request that offers any
}

// maxIdleCalls limits how often the model waits for the tool.
const maxIdleCalls = 100

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	tools, results := m.api.read(body)
	tool, arguments := m.next(tools, results)
	w.Header().Set("Content-Type", "text/event-stream")
	m.api.write(w, len(results), tool, arguments)
}

// next returns the next call, or "" if there is none.
func (m *scriptedModel) next(tools, results []string) (tool, arguments string) {
	if len(tools) == 0 { // another use of the model, such as a title
		return "", ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = tools
	if m.called != "" {
		if len(results) > m.after {
			m.result = results[m.after]
		}
		return "", ""
	}
	if at := slices.IndexFunc(tools, func(name string) bool { return strings.HasSuffix(name, m.tool) }); at >= 0 {
		m.called, m.after = tools[at], len(results)
		return m.called, m.arguments
	}
	if m.idleTool != "" && len(results) < maxIdleCalls {
		return m.idleTool, "{}"
	}
	return "", ""
}

// quote returns a text as JSON.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// sendEvents writes server-sent events: each name is followed by its data. An event without a name has only data.
func sendEvents(w io.Writer, parts ...string) {
	for pair := range slices.Chunk(parts, 2) {
		if pair[0] != "" {
			fmt.Fprintf(w, "event: %s\n", pair[0])
		}
		fmt.Fprintf(w, "data: %s\n\n", pair[1])
	}
}

// anthropicAPI is the Messages API, for Claude Code.
var anthropicAPI = modelAPI{
	read: func(body []byte) (tools, results []string) {
		var r struct {
			Tools    []struct{ Name string }
			Messages []struct{ Content json.RawMessage }
		}
		_ = json.Unmarshal(body, &r)
		for _, t := range r.Tools {
			tools = append(tools, t.Name)
		}
		for _, message := range r.Messages {
			var parts []struct {
				Type    string
				Content json.RawMessage
			}
			_ = json.Unmarshal(message.Content, &parts) // a plain text has no parts
			for _, part := range parts {
				if part.Type == "tool_result" {
					results = append(results, string(part.Content))
				}
			}
		}
		return tools, results
	},
	write: func(w io.Writer, n int, tool, arguments string) {
		block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"done"}`, "end_turn"
		if tool != "" {
			block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%s,"input":{}}`, n, quote(tool))
			delta, stop = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quote(arguments)), "tool_use"
		}
		sendEvents(w,
			"message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
			"content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`,
			"content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`,
			"content_block_stop", `{"type":"content_block_stop","index":0}`,
			"message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":1}}`,
			"message_stop", `{"type":"message_stop"}`)
	},
}

// responsesAPI is OpenAI's Responses API, for Codex. The name of a tool in a namespace is NAMESPACE and NAME with a
// slash between them.
var responsesAPI = modelAPI{
	read: func(body []byte) (tools, results []string) {
		type tool struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		var r struct {
			Tools []tool
			Input []struct {
				Type   string
				Output json.RawMessage
			}
		}
		_ = json.Unmarshal(body, &r)
		for _, t := range r.Tools {
			if t.Type != "namespace" {
				tools = append(tools, t.Name)
			}
			for _, inner := range t.Tools {
				tools = append(tools, t.Name+"/"+inner.Name)
			}
		}
		for _, item := range r.Input {
			if item.Type == "function_call_output" {
				results = append(results, string(item.Output))
			}
		}
		return tools, results
	},
	write: func(w io.Writer, n int, tool, arguments string) {
		item := `{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"done"}]}`
		if tool != "" {
			space, name, found := strings.Cut(tool, "/")
			if !found {
				space, name = "", tool
			} else {
				space = `"namespace":` + quote(space) + `,`
			}
			item = fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%[1]d",%s"name":%s,"arguments":%s}`, n, space, quote(name), quote(arguments))
		}
		sendEvents(w,
			"response.created", `{"type":"response.created","response":{"id":"r"}}`,
			"response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
			"response.completed", `{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	},
}

// geminiAPI is the Gemini API, for Gemini CLI.
var geminiAPI = modelAPI{
	read: func(body []byte) (tools, results []string) {
		var r struct {
			Tools []struct {
				FunctionDeclarations []struct{ Name string }
			}
			Contents []struct {
				Parts []struct{ FunctionResponse json.RawMessage }
			}
		}
		_ = json.Unmarshal(body, &r)
		for _, t := range r.Tools {
			for _, f := range t.FunctionDeclarations {
				tools = append(tools, f.Name)
			}
		}
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					results = append(results, string(p.FunctionResponse))
				}
			}
		}
		return tools, results
	},
	write: func(w io.Writer, _ int, tool, arguments string) {
		part := `{"text":"done"}`
		if tool != "" {
			part = `{"functionCall":{"name":` + quote(tool) + `,"args":` + arguments + `}}`
		}
		sendEvents(w, "", `{"candidates":[{"index":0,"content":{"role":"model","parts":[`+part+`]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"scripted"}`)
	},
}

// chatAPI is OpenAI's Chat Completions API, for opencode.
var chatAPI = modelAPI{
	read: func(body []byte) (tools, results []string) {
		var r struct {
			Tools    []struct{ Function struct{ Name string } }
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		_ = json.Unmarshal(body, &r)
		for _, t := range r.Tools {
			tools = append(tools, t.Function.Name)
		}
		for _, message := range r.Messages {
			if message.Role == "tool" {
				results = append(results, string(message.Content))
			}
		}
		return tools, results
	},
	write: func(w io.Writer, n int, tool, arguments string) {
		delta, reason := `{"role":"assistant","content":"done"}`, "stop"
		if tool != "" {
			delta = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%s,"arguments":%s}}]}`, n, quote(tool), quote(arguments))
			reason = "tool_calls"
		}
		chunk := func(delta, reason string) string {
			return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
		}
		sendEvents(w, "", chunk(delta, "null"), "", chunk("{}", quote(reason)), "", "[DONE]")
	},
}

// callingClient is a client from npm that runs one task without a user, against a scripted model.
type callingClient struct {
	id, program string
	surface     string // auto chooses it, unless chosen is set
	chosen      bool
	api         modelAPI
	idleTool    string
	before      [2]string // a file of the user, by path and text
	args        []string  // the command, with MODEL for the address of the model
	env         []string
	refusal     string // part of the output or answer of the client, in place of a call that needs approval
}

var callingClients = []callingClient{
	{id: "claude-code", program: "claude", surface: "lanes", api: anthropicAPI, idleTool: "TaskList", refusal: "requested permissions to use",
		args: []string{"-p", "look at my notes"},
		env:  []string{"ANTHROPIC_BASE_URL=MODEL", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}},
	{id: "codex", program: "codex", surface: "lanes", api: responsesAPI, refusal: "requires approval",
		args: []string{"exec", "--skip-git-repo-check", "-c", `model_provider="scripted"`, "-c", `model="scripted"`,
			"-c", `model_providers.scripted={name="scripted", base_url="MODEL", wire_api="responses", env_key="SCRIPTED_KEY"}`, "look at my notes"},
		env: []string{"SCRIPTED_KEY=none"}},
	{id: "gemini", program: "gemini", surface: "search", api: geminiAPI, refusal: "requires user confirmation",
		before: [2]string{".gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}`},
		args:   []string{"-m", "gemini-2.5-flash", "-p", "look at my notes"},
		env:    []string{"GOOGLE_GEMINI_BASE_URL=MODEL", "GEMINI_API_KEY=none", "NO_BROWSER=1"}},
	{id: "opencode", program: "opencode", surface: "search", api: chatAPI, refusal: "permission requested",
		args: []string{"run", "-m", "scripted/scripted", "look at my notes"},
		env: []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", `OPENCODE_CONFIG_CONTENT={"provider":{"scripted":` +
			`{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"MODEL","apiKey":"none"},"models":{"scripted":{"name":"scripted"}}}}}`}},
}

// TestClientsFollowTheirRules: MCPProxy imports a server, connects each client with the surface of the table and writes
// its rules. Then a read runs without asking, and a write and a destructive call do not run, because no user can be
// asked. The check of the rules reports the same. On the surface lanes, the client sees the names of the tools.
func TestClientsFollowTheirRules(t *testing.T) {
	t.Parallel()
	clients := slices.Clone(callingClients)
	for _, c := range callingClients {
		if c.surface == "lanes" {
			c.surface, c.chosen = "search", true
			clients = append(clients, c)
		}
	}
	for _, c := range clients {
		t.Run(c.id+" "+c.surface, func(t *testing.T) {
			t.Parallel()
			c.followRules(t)
		})
	}
}

func (c callingClient) followRules(t *testing.T) {
	program := clientProgram(t, c.program)
	d := startDaemon(t, `{}`, noKeyring, inPath(program))
	d.inHome(".claude.json", fmt.Sprintf(`{"mcpServers": {"notes": {"command": %q, "args": ["demo-upstream", "notes"]}}}`, binary))
	if c.before[0] != "" {
		d.inHome(c.before[0], c.before[1])
	}
	connect := "connect " + c.id + " --yes"
	if c.chosen {
		connect += " --surface " + c.surface
	}
	for _, step := range []string{
		"upstream import claude-code --yes --remove", "upstream approve notes --yes", "upstream approve notes --yes",
		connect, "permissions " + c.id + " --write --yes",
	} {
		if code, out, notes := d.cli(strings.Fields(step)...); code != 0 {
			t.Fatalf("%s: %d\n%s%s", step, code, out, notes)
		}
	}
	verdicts := d.checkedVerdicts(c.id)
	for _, call := range []struct{ lane, tool, arguments string }{
		{"read", "list_notes", `{}`},
		{"write", "write_note", `{"title":"t","text":"x"}`},
		{"destructive", "delete_note", `{"title":"old-draft"}`},
	} {
		model := &scriptedModel{api: c.api, idleTool: c.idleTool, tool: "notes__" + call.tool, arguments: call.arguments}
		if c.surface == "search" {
			model.tool = "call_tool_" + call.lane
			model.arguments = `{"name":"notes:` + call.tool + `","args":` + call.arguments + `}`
		}
		said := c.run(d, program, model)
		_, log, _ := d.cli("activity", "list", "--type", "tool_call", "-o", "json")
		verdict, want, answer := "asks", "asks", c.refusal
		if call.lane == "read" {
			want, answer = "runs", "groceries"
		}
		if strings.Contains(log, `"tool_name": "`+call.tool+`"`) {
			verdict = "runs"
		}
		if verdict != want || verdicts[call.lane] != want || !strings.Contains(model.result+said, answer) {
			t.Errorf("%s: the client %s, the check says %s, want %s and %q\ncalled %q of %q, result %s\n%s",
				call.lane, verdict, verdicts[call.lane], want, answer, model.called, model.tools, model.result, said)
		}
	}
}

// checkedVerdicts returns what the check of the rules reports, by lane.
func (d *daemon) checkedVerdicts(client string) map[string]string {
	d.t.Helper()
	code, out, notes := d.cli("permissions", client, "--check", "-o", "json")
	var checked struct {
		Lanes []struct{ Lane, Verdict string }
	}
	if err := json.Unmarshal([]byte(out), &checked); code != 0 || err != nil {
		d.t.Fatalf("%d %v\n%s%s", code, err, out, notes)
	}
	verdicts := map[string]string{}
	for _, l := range checked.Lanes {
		verdicts[l.Lane] = l.Verdict
	}
	return verdicts
}

// run runs the client's task and returns what it prints.
func (c callingClient) run(d *daemon, program string, model *scriptedModel) string {
	service := httptest.NewServer(model)
	defer service.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	toModel := func(texts []string) (out []string) {
		for _, text := range texts {
			out = append(out, strings.ReplaceAll(text, "MODEL", service.URL))
		}
		return out
	}
	cmd := exec.CommandContext(ctx, program, toModel(c.args)...)
	cmd.Dir, cmd.Env = d.t.TempDir(), d.environ(append(toModel(c.env), "NO_COLOR=1")...)
	said, err := cmd.CombinedOutput()
	return fmt.Sprintf("%v\n%s", err, said)
}
