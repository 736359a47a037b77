package mcpserver

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// The names of the built-in tools other than the call tools.
const (
	toolRetrieve        = "retrieve_tools"
	toolReadResult      = "read_result"
	toolUpstreamServers = "upstream_servers"
)

const retrieveDefinition = `{"name":"retrieve_tools",` +
	`"description":"Find tools of all connected MCP servers; start here. ` +
	`Results carry annotations and call_with, the variant to call: ` +
	`call_tool_read for queries, call_tool_write to create or update, call_tool_destructive to delete or do what cannot be undone. ` +
	`include_disabled also lists tools that exist but cannot be called, and says why.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"query":{"type":"string","description":"Action and object, for example: create github issue"},` +
	`"limit":{"type":"integer","minimum":1,"maximum":100},` +
	`"operation_type":{"type":"string","enum":["read","write","destructive"]},` +
	`"detail":{"type":"string","enum":["auto","full","compact"],"description":"auto: the best 3 have inputSchema, others are cut"},` +
	`"include_disabled":{"type":"boolean"}},"required":["query"]},` +
	`"annotations":` + lookingOnly + `,` + alwaysLoad + `}`

// alwaysLoad tells clients that defer tools to always show the ones needed to find and call all others.
const alwaysLoad = `"_meta":{"anthropic/alwaysLoad":true}`

// lookingOnly are the annotations of tools that only read MCPProxy's own state. Read-only implies
// idempotent.
const lookingOnly = `{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}`

const readResultDefinition = `{"name":"read_result",` +
	`"description":"Read the rest of a truncated result; it says how. Handles expire in two hours.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"handle":{"type":"string"},` +
	`"offset":{"type":"integer","description":"Elements of an array, members of an object, characters of a text"},` +
	`"limit":{"type":"integer"},` +
	`"select":{"type":"string"},` +
	`"path":{"type":"string","description":"JSON path, e.g. items[0].name, items[5:9], items[*].id"}},"required":["handle"]},` +
	`"annotations":` + lookingOnly + `}`

const upstreamServersDefinition = `{"name":"upstream_servers",` +
	`"description":"Look at the connected MCP servers, their state and number of tools: list all, or get one by name.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"operation":{"type":"string","enum":["list","get"]},` +
	`"name":{"type":"string"}},"required":["operation"]},` +
	`"annotations":` + lookingOnly + `}`

// proposeDefinition is upstream_servers for agents that may propose servers.
const proposeDefinition = `{"name":"upstream_servers",` +
	`"description":"MCP servers and their state: list, get, restart. ` +
	`add proposes one (url or command): nothing runs until a person approves it.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"operation":{"type":"string","enum":["list","get","add","restart"]},` +
	`"name":{"type":"string"},` +
	`"url":{"type":"string"},` +
	`"command":{"type":"string"},` +
	`"args_json":{"type":"string","description":"JSON array"},` +
	`"env_json":{"type":"string","description":"JSON object"}},"required":["operation"]},` +
	`"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}}`

// callToolVariant is what differs between the three call tools.
type callToolVariant struct {
	operation                  policy.Operation
	purpose, when, annotations string
}

var variants = [...]callToolVariant{
	{policy.Read, "queries without changing state",
		"Refused if marked destructive or not read-only.",
		`{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":true}`},
	{policy.Write, "creates or updates",
		"Refused if marked destructive.",
		`{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":true}`},
	{policy.Destructive, "deletes or does what cannot be undone",
		"Allowed, never refused, whatever the server's hints say.",
		`{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":true,"cursor/requiresConfirmation":true}`},
}

// selectSchema returns the description of select, which only one tool explains.
func (v callToolVariant) selectSchema() string {
	if v.operation == policy.Read {
		return `{"type":"string","description":"jq on the result: [.items[]|{id}]"}`
	}
	return `{"type":"string"}`
}

// toolDefinition returns the definition of a call tool. It lists the intent only if it is required, as flat
// parameters too, because nested ones confuse some model APIs. Other accepted parameters, such as
// args_json, are not listed.
func (v callToolVariant) toolDefinition(requireIntent bool) string {
	operation := v.operation.String()
	declares := "Choosing this tool declares the intent " + operation + "."
	intent, required := "", `"name"`
	if requireIntent {
		declares = "Requires intent.operation_type='" + operation + "'."
		only := `{"type":"string","enum":["` + operation + `"]}`
		intent = `,"intent_operation_type":` + only + `,"intent":{"type":"object","properties":{"operation_type":` + only +
			`,"data_sensitivity":{"type":"string"},"reason":{"type":"string"}},"required":["operation_type"]}`
		required = `"name","intent"`
	}
	return `{"name":"` + policy.CallToolForOperation(v.operation).String() + `",` +
		`"description":"Call a tool discovered via retrieve_tools that ` + v.purpose + `, with args as its inputSchema describes. ` +
		declares + ` ` + v.when + `",` +
		`"inputSchema":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"server:tool"},` +
		`"args":{"type":"object"},` +
		`"select":` + v.selectSchema() + `,` +
		`"intent_data_sensitivity":{"type":"string","enum":["` + strings.Join(policy.Sensitivities(), `","`) + `"]},` +
		`"intent_reason":{"type":"string","maxLength":1000}` + intent +
		`},"required":[` + required + `]},"annotations":` + v.annotations + `,` + alwaysLoad + `}`
}

// toolDefinitions returns the array of tools. A call tool is listed for clients with its lane or a more dangerous one, because
// some tools must be called with less than their lane.
func toolDefinitions(l toolListKey) string {
	all := []string{retrieveDefinition}
	for _, v := range variants {
		if v.operation <= l.most {
			all = append(all, v.toolDefinition(l.intent))
		}
	}
	all = append(all, readResultDefinition)
	switch l.management {
	case config.ManagePropose:
		all = append(all, proposeDefinition)
	case config.ManageRead:
		all = append(all, upstreamServersDefinition)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// replyTexts are the constant parts of replies. They are never modified.
type replyTexts struct {
	initialize map[bool][]byte        // after the protocol version, up to the instructions; by whether the client shows MCP Apps
	discover   map[bool][]byte        // up to the instructions, likewise
	front      string                 // of modern results
	lists      map[toolListKey][]byte // for clients with all lanes
}

// toolList returns the tool list.
func (t *replyTexts) toolList(l toolListKey) []byte {
	if text := t.lists[l]; text != nil {
		return text
	}
	tools := `"tools":` + toolDefinitions(l)
	if l.modern {
		return []byte(t.front + tools + `,` + caching + `}`)
	}
	return []byte(`{` + tools + `}`)
}

// toolListKey has the inputs of the tool list.
type toolListKey struct {
	modern, intent bool
	management     config.ServerManagement
	most           policy.Operation // the most dangerous lane of the client
}

// caching is for replies that depend only on the configuration and the client.
const caching = `"ttlMs":60000,"cacheScope":"private"`

// noCaching is for replies that may change at any time and differ between clients.
const noCaching = `,"ttlMs":0,"cacheScope":"private"`

func newReplyTexts(w *session.ReplyBuilder) replyTexts {
	t := replyTexts{initialize: map[bool][]byte{}, discover: map[bool][]byte{}, front: string(w.ResultPrefix(true)), lists: map[toolListKey][]byte{}}
	for apps, more := range map[bool]string{false: "", true: `,"resources":{},` + mcp.AppsServerExtension} {
		able := `"capabilities":{"tools":{"listChanged":true}` + more + `}`
		t.initialize[apps] = []byte(`",` + able + `,"serverInfo":` + w.ServerInfo + `,"instructions":`)
		t.discover[apps] = []byte(t.front + `"supportedVersions":` + mcp.SupportedVersions + `,` + able + `,"instructions":`)
	}
	for _, intent := range [...]bool{false, true} {
		for _, management := range [...]config.ServerManagement{config.ManageOff, config.ManageRead, config.ManagePropose} {
			for _, modern := range [...]bool{false, true} {
				l := toolListKey{modern, intent, management, policy.Destructive}
				t.lists[l] = t.toolList(l)
			}
		}
	}
	return t
}

// listsUpstreamServers reports whether upstream_servers is listed.
func listsUpstreamServers(cfg *config.Config) bool {
	return cfg.MCPManagement == config.ManageRead || cfg.MCPManagement == config.ManagePropose
}

// BuiltinDefinitions returns the built-in tools as clients see them, with annotations.
func BuiltinDefinitions(management config.ServerManagement) json.RawMessage {
	return json.RawMessage(toolDefinitions(toolListKey{management: management, most: policy.Destructive}))
}
