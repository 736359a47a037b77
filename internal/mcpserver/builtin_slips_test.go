package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
	"mcpproxy/internal/upstream"
)

// model is what a model sees of MCPProxy: the built-in tools, with a real gateway and
// a real gate behind them, and a server that notes what it gets.
type model struct {
	*catalogtest.Harness
	surface *BuiltinTools
	got     []string // by the server: tool and arguments
}

// StartProgress returns the start progress of known servers.
func (*model) StartProgress(string) upstream.StartProgress { return upstream.StartProgress{} }

func (*model) Deviations(string) []string               { return nil }
func (*model) SessionNeeds(string) []upstream.KnownNeed { return nil }

// decided is the gateway without the decisions of a user.
type decided struct{ *ops.Gateway }

func (decided) AddServer(context.Context, ops.Caller, ops.AddServerRequest) (ops.ServerView, error) {
	return ops.ServerView{}, errors.New("nobody proposes a server here")
}

func newModel(t testing.TB, change func(*config.Config), definitions ...string) *model {
	t.Helper()
	m := &model{Harness: catalogtest.New(t, change, definitions...)}
	m.Results["h"] = store.StoredResult{Handle: "h", Actor: catalogtest.AgentCaller.Actor.String(), Server: "s",
		Body: json.RawMessage(`{"content":[{"type":"text","text":"0123456789"}]}`), Expires: time.Now().Add(time.Hour)}
	m.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		m.got = append(m.got, r.Call.Tool+" "+string(r.Call.Arguments))
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)}, nil
	}
	g := ops.NewGateway(ops.GatewayDeps{Book: m.Book, Upstreams: m, Log: catalogtest.QueryableLog{Harness: m.Harness}, Gate: gate.New(gatetest.NewDeps(m.Harness))})
	m.surface = NewBuiltinTools(decided{g}, m.Config, session.NewReplyBuilder("1", catalogtest.Logger))
	return m
}

// builtinAnswer is what comes back: a result with both of its forms, or an error of the
// protocol.
type builtinAnswer struct {
	Content []struct{ Type, Text string }
	Error   struct {
		Code, Message, Hint string
		Details             json.RawMessage
	}
	IsError bool
	rpc     string
}

// call calls a built-in tool as a client of one of the eras.
func (m *model) call(modern bool, tool, arguments string) (a builtinAnswer) {
	m.T.Helper()
	caller := catalogtest.AgentCaller
	r := &session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Caller: &caller,
		Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))}
	var do session.Doer = m.surface
	if !modern {
		do = &legacySession{BuiltinTools: m.surface}
	}
	got, err := do.Do(m.T.Context(), r)
	if err != nil {
		m.T.Fatal(err)
	}
	if got.Error != nil {
		a.rpc = got.Error.Message
		return a
	}
	text := string(got.Result)
	if got.Front != nil {
		text = string(got.Front) + strings.TrimPrefix(text, "{") + string(got.Back)
	}
	var both struct {
		builtinAnswer
		StructuredContent struct{ Error json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &both); err != nil {
		m.T.Fatalf("%v: %s", err, text)
	}
	a = both.builtinAnswer
	if a.IsError {
		if err := json.Unmarshal(both.StructuredContent.Error, &a.Error); err != nil {
			m.T.Fatalf("%v: %s", err, text)
		}
	}
	return a
}

// slip is a call as a model makes it by mistake.
type slip struct {
	what, tool, arguments string
	// got holds the arguments that the server finally gets, from this call or from the repaired one; "" where a built-in tool
	// answers.
	got string
	// code is the expected error code; "" means that the call is accepted with its intended meaning. -32602 is a
	// protocol error.
	code string
	// helps contains the texts that the model needs for a correct next call.
	helps        []string
	tool2, right string // "": the same tool
}

const (
	lister = `{"name":"list","description":"List notes.","inputSchema":{"type":"object","properties":{"folder":{"type":"string"},"limit":{"type":"integer"},"deep":{"type":"boolean"}},"required":["folder"]},"annotations":{"readOnlyHint":true}}`
	finder = `{"name":"find","description":"Find notes.","inputSchema":{"type":"object","properties":{"words":{"type":"string"},"since":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`
	adder  = `{"name":"add","description":"Add a note.","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"}},"required":["title"]},"annotations":{"readOnlyHint":false,"destructiveHint":false}}`
	wiper  = `{"name":"wipe","description":"Delete notes.","inputSchema":{"type":"object","properties":{"folder":{"type":"string"}}},"annotations":{"destructiveHint":true}}`
	odd    = `{"name":" odd ","description":"Odd.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	even   = `{"name":"odd","description":"Not so odd.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
)

const (
	inRead, inWrite, inDestructive = "call_tool_read", "call_tool_write", "call_tool_destructive"
	listA                          = `list {"folder":"a"}`
	rightA                         = `{"name":"s:list","args":{"folder":"a"}}`
)

// taken are slips of which it is certain what was meant.
var taken = []slip{
	{what: "args as text", tool: inRead, arguments: `{"name":"s:list","args":"{\"folder\":\"a\"}"}`, got: listA},
	{what: "args as text between blanks", tool: inRead, arguments: `{"name":"s:list","args":"\n {\"folder\":\"a\"} \n"}`, got: listA},
	{what: "args_json as an object", tool: inRead, arguments: `{"name":"s:list","args_json":{"folder":"a"}}`, got: listA},
	{what: "args_json as text", tool: inRead, arguments: `{"name":"s:list","args_json":"{\"folder\":\"a\"}"}`, got: listA},
	{what: "args and an empty args_json", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"args_json":""}`, got: listA},
	{what: "args_json and empty args", tool: inRead, arguments: `{"name":"s:list","args":"","args_json":"{\"folder\":\"a\"}"}`, got: listA},
	{what: "args_json and null", tool: inRead, arguments: `{"name":"s:list","args":null,"args_json":"{\"folder\":\"a\"}"}`, got: listA},
	{what: "args and null", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"args_json":null}`, got: listA},
	{what: "empty args", tool: inRead, arguments: `{"name":"s:find","args":""}`, got: `find {}`},
	{what: "blank args", tool: inRead, arguments: `{"name":"s:find","args":" "}`, got: `find {}`},
	{what: "empty args_json", tool: inRead, arguments: `{"name":"s:find","args_json":""}`, got: `find {}`},
	{what: "args null", tool: inRead, arguments: `{"name":"s:find","args":null}`, got: `find {}`},
	{what: "args null as text", tool: inRead, arguments: `{"name":"s:find","args":"null"}`, got: `find {}`},
	{what: "no args", tool: inRead, arguments: `{"name":"s:find"}`, got: `find {}`},
	{what: "bytes that another reader would change", tool: inRead, arguments: `{"name":"s:list","args":"{\"folder\":\"\\u00e9\\/\", \"limit\":9007199254740993}"}`,
		got: `list {"folder":"\u00e9\/", "limit":9007199254740993}`},
	{what: "a null in args stays", tool: inRead, arguments: `{"name":"s:odd","args":{"a":null,"b":"","c":"3","d":" e "}}`, got: `odd {"a":null,"b":"","c":"3","d":" e "}`},

	{what: "blanks around the name", tool: inRead, arguments: `{"name":" s:list ","args":{"folder":"a"}}`, got: listA},
	{what: "a line end behind the name", tool: inRead, arguments: `{"name":"s:list\n","args":{"folder":"a"}}`, got: listA},
	{what: "a blank behind the colon", tool: inRead, arguments: `{"name":"s: list","args":{"folder":"a"}}`, got: listA},
	{what: "blanks that are the name's own", tool: inRead, arguments: `{"name":"s: odd "}`, got: ` odd  {}`},
	{what: "other blanks than the name's own", tool: inRead, arguments: `{"name":"s:odd "}`, got: `odd {}`},

	{what: "an intent that is a string", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"read"}`, got: listA},
	{what: "an empty intent", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":""}`, got: listA},
	{what: "an intent of nothing", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":{}}`, got: listA},
	{what: "an intent that is null", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":null}`, got: listA},
	{what: "an intent as JSON text", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"{\"operation_type\":\"read\"}"}`, got: listA},
	{what: "a flat operation", tool: inWrite, arguments: `{"name":"s:add","args":{"title":"a"},"intent_operation_type":"write"}`, got: `add {"title":"a"}`},
	{what: "an empty operation", tool: inWrite, arguments: `{"name":"s:add","args":{"title":"a"},"intent_operation_type":"","intent":{"operation_type":""}}`, got: `add {"title":"a"}`},
	{what: "two operations that are one", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"},"intent_operation_type":"read"}`, got: listA},
	{what: "prefixes within the intent", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":{"intent_operation_type":"read","intent_reason":"why","intent_data_sensitivity":"internal"}}`, got: listA},
	{what: "empty statements", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_reason":"","intent_data_sensitivity":""}`, got: listA},
	{what: "null statements", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_reason":null,"intent_data_sensitivity":null}`, got: listA},

	{what: "parameters that nobody has", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"server":"s","timeout":30,"explanation":"because"}`, got: listA},
	{what: "objects that nobody has", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"context":{"folder":"b"},"options":{"retry":true}}`, got: listA},
	{what: "a null beside args", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"limit":null}`, got: listA},
	{what: "an argument with the name of a parameter", tool: inWrite, arguments: `{"name":"s:add","args":{"title":"a","name":"b"}}`, got: `add {"title":"a","name":"b"}`},

	{what: "a limit as text", tool: toolRetrieve, arguments: `{"query":"notes","limit":"3"}`},
	{what: "a boolean as text", tool: toolRetrieve, arguments: `{"query":"notes","include_disabled":"true"}`},
	{what: "everything empty", tool: toolRetrieve, arguments: `{"query":"notes","limit":"","operation_type":"","detail":"","include_disabled":""}`},
	{what: "everything null", tool: toolRetrieve, arguments: `{"query":"notes","limit":null,"operation_type":null,"detail":null,"include_disabled":null}`},
	{what: "a limit that is too high", tool: toolRetrieve, arguments: `{"query":"notes","limit":"5e3"}`},
	{what: "an offset as text", tool: toolReadResult, arguments: `{"handle":"h","offset":"2","limit":"4","path":""}`},
	{what: "blanks around a server", tool: toolUpstreamServers, arguments: `{"operation":"get","name":" s "}`},
	{what: "a server that is not needed", tool: toolUpstreamServers, arguments: `{"operation":"list","name":""}`},
}

// refused are slips of which it is not, with what makes the next call right.
var refused = []slip{
	{what: "arguments beside the name", tool: inRead, arguments: `{"name":"s:list","folder":"a"}`, code: "INVALID_ARGS",
		helps: []string{"'folder'", "args", `"args": {"folder":"a"}`}, right: rightA, got: listA},
	{what: "several arguments beside the name", tool: inRead, arguments: `{"name":"s:list","folder":"a","limit":3}`, code: "INVALID_ARGS",
		helps: []string{"'folder', 'limit'", `"args": {"folder":"a","limit":3}`}, right: `{"name":"s:list","args": {"folder":"a","limit":3}}`, got: `list {"folder":"a","limit":3}`},
	{what: "some arguments in args, some beside", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"limit":3}`, code: "INVALID_ARGS",
		helps: []string{"'limit'", `"args": {"folder":"a","limit":3}`}, right: `{"name":"s:list","args":{"folder":"a","limit":3}}`, got: `list {"folder":"a","limit":3}`},
	{what: "an argument in args and beside", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"folder":"b"}`, code: "INVALID_ARGS",
		helps: []string{"'folder'", `"args": {"folder":"a"}`}, right: rightA, got: listA},
	{what: "arguments", tool: inRead, arguments: `{"name":"s:list","arguments":{"folder":"a"}}`, code: "INVALID_ARGS",
		helps: []string{"'arguments'", `"args": {"folder":"a"}`}, right: rightA, got: listA},
	{what: "arguments as text", tool: inRead, arguments: `{"name":"s:list","arguments":"{\"folder\":\"a\"}"}`, code: "INVALID_ARGS",
		helps: []string{"'arguments'", `"args": {"folder":"a"}`}, right: rightA, got: listA},
	{what: "parameters with empty args", tool: inRead, arguments: `{"name":"s:list","args":{},"parameters":{"folder":"a"}}`, code: "INVALID_ARGS",
		helps: []string{"'parameters'", `"args": {"folder":"a"}`}, right: rightA, got: listA},
	{what: "an input that would be left out silently", tool: inDestructive, arguments: `{"name":"s:wipe","input":{"folder":"a"}}`, code: "INVALID_ARGS",
		helps: []string{"'input'", `"args": {"folder":"a"}`}, right: `{"name":"s:wipe","args":{"folder":"a"}}`, got: `wipe {"folder":"a"}`},
	{what: "args in args", tool: inRead, arguments: `{"name":"s:list","args":{"args":{"folder":"a"}}}`, code: "ARGS_MISMATCH",
		helps: []string{"folder", `"required":["folder"]`}, right: rightA, got: listA},
	{what: "the whole call in args", tool: inRead, arguments: `{"name":"s:list","args":{"name":"s:list","args":{"folder":"a"}}}`, code: "ARGS_MISMATCH",
		helps: []string{"folder", `"required":["folder"]`}, right: rightA, got: listA},

	{what: "another word for the name", tool: inRead, arguments: `{"tool":"s:list","args":{"folder":"a"}}`, code: "INVALID_NAME",
		helps: []string{"name", "missing", "server:tool"}, right: rightA, got: listA},
	{what: "server and tool apart", tool: inRead, arguments: `{"server":"s","tool_name":"list","args":{"folder":"a"}}`, code: "INVALID_NAME",
		helps: []string{"name", "missing", "server:tool"}, right: rightA, got: listA},
	{what: "an empty name", tool: inRead, arguments: `{"name":"","args":{"folder":"a"}}`, code: "INVALID_NAME",
		helps: []string{"name", "missing", "server:tool"}, right: rightA, got: listA},
	{what: "no server", tool: inRead, arguments: `{"name":"list","args":{"folder":"a"}}`, code: "INVALID_NAME", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "two underscores", tool: inRead, arguments: `{"name":"s__list","args":{"folder":"a"}}`, code: "INVALID_NAME", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "a dot", tool: inRead, arguments: `{"name":"s.list","args":{"folder":"a"}}`, code: "INVALID_NAME", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "a slash", tool: inRead, arguments: `{"name":"s/list","args":{"folder":"a"}}`, code: "INVALID_NAME", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "two colons", tool: inRead, arguments: `{"name":"s::list","args":{"folder":"a"}}`, code: "TOOL_NOT_FOUND", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "a tool misspelt", tool: inRead, arguments: `{"name":"s:lists","args":{"folder":"a"}}`, code: "TOOL_NOT_FOUND", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "a tool in another case", tool: inRead, arguments: `{"name":"s:List","args":{"folder":"a"}}`, code: "TOOL_NOT_FOUND", helps: []string{"'s:list'"}, right: rightA, got: listA},
	{what: "a server in another case", tool: inRead, arguments: `{"name":"S:list","args":{"folder":"a"}}`, code: "SERVER_NOT_FOUND", helps: []string{"Server 'S'", "'s'"}, right: rightA, got: listA},
	{what: "a name in a list", tool: inRead, arguments: `{"name":["s:list"],"args":{"folder":"a"}}`, code: "INVALID_NAME", helps: []string{"server:tool"}, right: rightA, got: listA},

	{what: "both forms", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"args_json":"{\"folder\":\"b\"}"}`, code: "INVALID_ARGS", helps: []string{"both", "once", "args"}, right: rightA, got: listA},
	{what: "args as a list", tool: inRead, arguments: `{"name":"s:list","args":["a"]}`, code: "INVALID_ARGS", helps: []string{"array", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args as a list as text", tool: inRead, arguments: `{"name":"s:list","args":"[\"a\"]"}`, code: "INVALID_ARGS", helps: []string{"array", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args as a number", tool: inRead, arguments: `{"name":"s:list","args":1}`, code: "INVALID_ARGS", helps: []string{"number", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args in a form of its own", tool: inRead, arguments: `{"name":"s:list","args":"folder=a"}`, code: "INVALID_ARGS", helps: []string{"args", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args as Python writes them", tool: inRead, arguments: `{"name":"s:list","args":"{'folder': 'a'}"}`, code: "INVALID_ARGS", helps: []string{"args", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args as text of a text", tool: inRead, arguments: `{"name":"s:list","args":"\"{\\\"folder\\\":\\\"a\\\"}\""}`, code: "INVALID_ARGS", helps: []string{"a string", `args {"key": value}`}, right: rightA, got: listA},
	{what: "args as text that says a thing twice", tool: inRead, arguments: `{"name":"s:list","args":"{\"folder\":\"a\",\"folder\":\"b\"}"}`, code: "INVALID_ARGS", helps: []string{"duplicate", "args"}, right: rightA, got: listA},

	{what: "a number as text in args", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a","limit":"3"}}`, code: "ARGS_MISMATCH",
		helps: []string{"/limit", `"limit":{"type":"integer"}`}, right: `{"name":"s:list","args":{"folder":"a","limit":3}}`, got: `list {"folder":"a","limit":3}`},
	{what: "a boolean as text in args", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a","deep":"true"}}`, code: "ARGS_MISMATCH",
		helps: []string{"/deep", `"deep":{"type":"boolean"}`}, right: `{"name":"s:list","args":{"folder":"a","deep":true}}`, got: `list {"folder":"a","deep":true}`},
	{what: "a null in args", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a","limit":null}}`, code: "ARGS_MISMATCH",
		helps: []string{"/limit", `"limit":{"type":"integer"}`}, right: rightA, got: listA},
	{what: "an argument left out", tool: inRead, arguments: `{"name":"s:list","args":{}}`, code: "ARGS_MISMATCH",
		helps: []string{"folder", `"folder":{"type":"string"}`}, right: rightA, got: listA},
	{what: "an argument misspelt", tool: inRead, arguments: `{"name":"s:list","args":{"Folder":"a"}}`, code: "ARGS_MISMATCH",
		helps: []string{"folder", `"folder":{"type":"string"}`}, right: rightA, got: listA},

	{what: "the read lane for what deletes", tool: inRead, arguments: `{"name":"s:wipe"}`, code: "SERVER_MISMATCH", helps: []string{inDestructive, "same name and arguments"}, tool2: inDestructive, right: `{"name":"s:wipe"}`, got: `wipe {}`},
	{what: "the write lane for what deletes", tool: inWrite, arguments: `{"name":"s:wipe","intent":"write"}`, code: "SERVER_MISMATCH", helps: []string{inDestructive, `"destructive"`}, tool2: inDestructive, right: `{"name":"s:wipe","intent":"destructive"}`, got: `wipe {}`},
	{what: "the read lane for what changes things", tool: inRead, arguments: `{"name":"s:add","args":{"title":"a"},"intent":"read"}`, code: "SERVER_MISMATCH", helps: []string{"use " + inWrite, `"write"`}, tool2: inWrite, right: `{"name":"s:add","args":{"title":"a"},"intent":"write"}`, got: `add {"title":"a"}`},
	{what: "another intent than the lane's", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"write"}`, code: "INTENT_MISMATCH",
		helps: []string{`intent.operation_type "read"`}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "a flat intent of another lane", tool: inRead, arguments: `{"name":"s:add","args":{"title":"a"},"intent_operation_type":"write"}`, code: "INTENT_MISMATCH",
		helps: []string{inWrite}, tool2: inWrite, right: `{"name":"s:add","args":{"title":"a"},"intent_operation_type":"write"}`, got: `add {"title":"a"}`},
	{what: "an intent that is a sentence", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"look at the notes"}`, code: "INVALID_OPERATION_TYPE",
		helps: []string{"intent.operation_type", "call_tool_read read"}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "an operation in capitals", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_operation_type":"READ"}`, code: "INVALID_OPERATION_TYPE",
		helps: []string{"'READ'", "must be read"}, right: `{"name":"s:list","args":{"folder":"a"},"intent_operation_type":"read"}`, got: listA},
	{what: "two operations", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"read","intent_operation_type":"write"}`, code: "INVALID_ARGS",
		helps: []string{"intent_operation_type", "differ", "give one"}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "a list of intents", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":["read"]}`, code: "INVALID_ARGS",
		helps: []string{`{"operation_type": "read"`}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "a sensitivity of its own", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_data_sensitivity":"secret"}`, code: "INVALID_SENSITIVITY",
		helps: []string{"private", "leave it out"}, right: `{"name":"s:list","args":{"folder":"a"},"intent_data_sensitivity":"private"}`, got: listA},
	{what: "a reason that is too long", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_reason":"` + strings.Repeat("é", 1001) + `"}`, code: "REASON_TOO_LONG",
		helps: []string{"1000", "omit it"}, right: `{"name":"s:list","args":{"folder":"a"},"intent_reason":"why"}`, got: listA},
	{what: "a reason that is a list", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_reason":["why"]}`, code: "INVALID_ARGS",
		helps: []string{"intent_reason must be a string"}, right: `{"name":"s:list","args":{"folder":"a"},"intent_reason":"why"}`, got: listA},

	{what: "a query that is a list", tool: toolRetrieve, arguments: `{"query":["notes"]}`, code: "INVALID_PARAMETER", helps: []string{"query", "a string"}, right: `{"query":"notes"}`},
	{what: "a limit in words", tool: toolRetrieve, arguments: `{"query":"notes","limit":"three"}`, code: "INVALID_PARAMETER", helps: []string{"limit", "an integer from 1 to 100"}, right: `{"query":"notes","limit":3}`},
	{what: "a boolean in words", tool: toolRetrieve, arguments: `{"query":"notes","include_disabled":"yes"}`, code: "INVALID_PARAMETER", helps: []string{"include_disabled", "true or false"}, right: `{"query":"notes","include_disabled":true}`},
	{what: "an operation that is none", tool: toolRetrieve, arguments: `{"query":"notes","operation_type":"delete"}`, code: "INVALID_PARAMETER", helps: []string{"operation_type", "read, write or destructive"}, right: `{"query":"notes","operation_type":"destructive"}`},
	{what: "a detail that is none", tool: toolRetrieve, arguments: `{"query":"notes","detail":"short"}`, code: "INVALID_PARAMETER", helps: []string{"detail", "auto, full or compact"}, right: `{"query":"notes","detail":"compact"}`},
	{what: "no handle", tool: toolReadResult, arguments: `{"offset":2}`, code: "INVALID_PARAMETER", helps: []string{"handle", "that the cut result names"}, right: `{"handle":"h","offset":2}`},
	{what: "an offset before the beginning", tool: toolReadResult, arguments: `{"handle":"h","offset":-1}`, code: "INVALID_PARAMETER", helps: []string{"offset", "at least 0"}, right: `{"handle":"h","offset":0}`},
	{what: "no operation", tool: toolUpstreamServers, arguments: `{"name":"s"}`, code: "INVALID_PARAMETER", helps: []string{"operation", "list, get"}, right: `{"operation":"get","name":"s"}`},
	{what: "no server to get", tool: toolUpstreamServers, arguments: `{"operation":"get"}`, code: "INVALID_PARAMETER", helps: []string{"name", "the server to get"}, right: `{"operation":"get","name":"s"}`},
	{what: "a server misspelt", tool: toolUpstreamServers, arguments: `{"operation":"get","name":"note"}`, code: "SERVER_NOT_FOUND", helps: []string{"'note'", "notes"}, right: `{"operation":"get","name":"notes"}`},

	{what: "the old call_tool", tool: "call_tool", arguments: rightA, code: "-32602", helps: []string{inRead}, tool2: inRead, right: rightA, got: listA},
	{what: "a tool's own name", tool: "s:list", arguments: `{"folder":"a"}`, code: "-32602", helps: []string{inRead, "parameter name"}, tool2: inRead, right: rightA, got: listA},
	{what: "a built-in tool misspelt", tool: "retrieve_tool", arguments: `{"query":"notes"}`, code: "-32602", helps: []string{"'retrieve_tools'"}, tool2: toolRetrieve, right: `{"query":"notes"}`},
}

// required are slips in calls that must declare an intent.
var required = []slip{
	{what: "no intent", tool: inRead, arguments: rightA, code: "MISSING_INTENT", helps: []string{`intent: {"operation_type": "read"}`}, right: `{"name":"s:list","args":{"folder":"a"},"intent": {"operation_type": "read"}}`, got: listA},
	{what: "an empty intent", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":""}`, code: "MISSING_INTENT", helps: []string{`intent: {"operation_type": "read"}`}, right: `{"name":"s:list","args":{"folder":"a"},"intent": {"operation_type": "read"}}`, got: listA},
	{what: "an intent without operation", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":{"reason":"why"}}`, code: "MISSING_OPERATION_TYPE", helps: []string{`intent.operation_type to "read"`}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "another intent", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"write"}`, code: "INTENT_MISMATCH", helps: []string{`declare intent.operation_type "read".`}, right: `{"name":"s:list","args":{"folder":"a"},"intent":{"operation_type":"read"}}`, got: listA},
	{what: "a number as intent", tool: inDestructive, arguments: `{"name":"s:wipe","intent":1}`, code: "INVALID_ARGS", helps: []string{`{"operation_type": "destructive"`, `"why"}.`}, right: `{"name":"s:wipe","intent":{"operation_type": "destructive", "data_sensitivity": "internal", "reason": "why"}}`, got: `wipe {}`},
	{what: "an operation that is none", tool: inRead, arguments: `{"name":"s:wipe","intent":"delete"}`, code: "INVALID_OPERATION_TYPE", helps: []string{`call_tool_destructive always passes (with intent.operation_type "destructive").`}, tool2: inDestructive, right: `{"name":"s:wipe","intent":{"operation_type":"destructive"}}`, got: `wipe {}`},
	{what: "an intent that is a string", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"read"}`, got: listA},
	{what: "an intent as JSON text", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent":"{\"operation_type\":\"read\"}"}`, got: listA},
	{what: "a flat intent", tool: inRead, arguments: `{"name":"s:list","args":{"folder":"a"},"intent_operation_type":"read"}`, got: listA},
}

// TestModelMistakes makes each mistake as a model does. If the intention is certain, the server gets the intended call,
// and nothing else. The text and the structured content of a refusal each explain the correct next call. The test makes
// that call.
func TestModelMistakes(t *testing.T) {
	if n := len(taken) + len(refused) + len(required); n < 60 {
		t.Fatalf("only %d slips", n)
	}
	for _, c := range []struct {
		require bool
		slips   []slip
	}{{false, taken}, {false, refused}, {true, required}} {
		m := newModel(t, func(cfg *config.Config) {
			cfg.Intent.RequireIntent = c.require
			cfg.Servers = append(cfg.Servers, config.Server{Name: "notes", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto})
		}, lister, finder, adder, wiper, odd, even)
		for _, s := range c.slips {
			for _, modern := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s, modern %v", s.tool, s.what, modern), func(t *testing.T) { m.try(t, modern, s) })
			}
		}
	}
}

func (m *model) try(t *testing.T, modern bool, s slip) {
	m.got = nil
	a := m.call(modern, s.tool, s.arguments)
	if s.code != "" {
		if len(m.got) > 0 {
			t.Errorf("the server got %s", m.got)
		}
		a.mustHelp(t, s)
		if s.tool2 == "" {
			s.tool2 = s.tool
		}
		a = m.call(modern, s.tool2, s.right)
	}
	if a.IsError || a.rpc != "" {
		t.Fatalf("refused: %+v", a)
	}
	if s.got == "" && m.got != nil || s.got != "" && (len(m.got) != 1 || m.got[0] != s.got) {
		t.Errorf("the server got %q, want %q", m.got, s.got)
	}
}

// mustHelp fails unless both the text and the structured content of a refusal contain the expected help.
func (a *builtinAnswer) mustHelp(t *testing.T, s slip) {
	t.Helper()
	if s.code == "-32602" {
		for _, word := range s.helps {
			if !strings.Contains(a.rpc, word) {
				t.Errorf("the error does not say %q: %s", word, a.rpc)
			}
		}
		return
	}
	if !a.IsError || a.Error.Code != s.code || len(a.Content) != 1 {
		t.Fatalf("want a refusal with %s: %+v", s.code, a)
	}
	readers := map[string]string{"text": a.Content[0].Text, "structured content": a.Error.Message + "\n" + a.Error.Hint + "\n" + string(a.Error.Details)}
	if a.Error.Hint == "" || !strings.HasPrefix(readers["text"], a.Error.Message+"\nHint: "+a.Error.Hint) {
		t.Errorf("the text does not begin with message and hint: %s", readers["text"])
	}
	for reader, said := range readers {
		for _, word := range s.helps {
			if !strings.Contains(said, word) {
				t.Errorf("who reads the %s is not told %q: %s", reader, word, said)
			}
		}
	}
}

// TestWarningsAreInTheText: a warning comes after the server's own content, which is unchanged.
func TestWarningsAreInTheText(t *testing.T) {
	m := newModel(t, nil, lister)
	for _, modern := range []bool{true, false} {
		a := m.call(modern, inWrite, rightA)
		if a.IsError || len(a.Content) != 2 || a.Content[0].Text != "done" || a.Content[1].Type != "text" ||
			!strings.HasPrefix(a.Content[1].Text, "Warning: Tool 's:list' is marked read-only by server, call_tool_write is overly cautious") {
			t.Errorf("%+v", a)
		}
		if a := m.call(modern, inRead, rightA); len(a.Content) != 1 {
			t.Errorf("a call without a warning: %+v", a)
		}
	}
}

// TestLargeSchemasAreCut: the text of a refusal has the beginning of a large schema,
// and how to get the whole; the structured content has all of it.
func TestLargeSchemasAreCut(t *testing.T) {
	long := strings.Repeat("x", 5000)
	m := newModel(t, nil, `{"name":"big","inputSchema":{"type":"object","properties":{"n":{"type":"integer","description":"`+long+`"}},"required":["n"]}}`)
	a := m.call(true, inWrite, `{"name":"s:big"}`)
	text := a.Content[0].Text
	if len(text) > 5000 || !strings.Contains(text, "'n'") || !strings.Contains(text, "retrieve_tools with the tool's name as query") || !strings.Contains(string(a.Error.Details), long) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	if found := m.call(true, toolRetrieve, `{"query":"s:big","limit":1,"detail":"full"}`); !strings.Contains(found.Content[0].Text, long) {
		t.Errorf("what it says to do does not give the schema: %+v", found)
	}
}
