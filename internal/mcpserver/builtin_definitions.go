package mcpserver

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// The names of the built-in tools, beside those of the variants.
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
	`"annotations":` + looking + `,` + alwaysLoad + `}`

// alwaysLoad keeps a client that defers tools from hiding the ones that
// everything else is found and called with.
const alwaysLoad = `"_meta":{"anthropic/alwaysLoad":true}`

// looking are the annotations of what only looks at MCPProxy itself. That such is
// idempotent goes without saying.
const looking = `{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}`

const readResultDefinition = `{"name":"read_result",` +
	`"description":"Read on in a result that was cut: it says how. Handles are good for two hours.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"handle":{"type":"string"},` +
	`"offset":{"type":"integer","description":"Elements of an array, members of an object, characters of a text"},` +
	`"limit":{"type":"integer"},` +
	`"select":{"type":"string"},` +
	`"path":{"type":"string","description":"JSON path, e.g. items[0].name, items[5:9], items[*].id"}},"required":["handle"]},` +
	`"annotations":` + looking + `}`

const upstreamServersDefinition = `{"name":"upstream_servers",` +
	`"description":"Look at the connected MCP servers, their state and number of tools: list all, or get one by name.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"operation":{"type":"string","enum":["list","get"]},` +
	`"name":{"type":"string"}},"required":["operation"]},` +
	`"annotations":` + looking + `}`

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

// variant is what tells the three calling tools apart.
type variant struct {
	operation                  policy.Operation
	purpose, when, annotations string
}

var variants = [...]variant{
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

// selects is the parameter select, which is explained once.
func (v variant) selects() string {
	if v.operation == policy.Read {
		return `{"type":"string","description":"jq on the result: [.items[]|{id}]"}`
	}
	return `{"type":"string"}`
}

// definition writes the definition of a calling tool. The intent is advertised only
// where it is obligatory, and flat, too: nested parameters trouble some model APIs.
// What is accepted beside, such as args_json, is not advertised at all.
func (v variant) definition(requireIntent bool) string {
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
	return `{"name":"` + policy.VariantOf(v.operation).String() + `",` +
		`"description":"Call a tool discovered via retrieve_tools that ` + v.purpose + `, with args as its inputSchema describes. ` +
		declares + ` ` + v.when + `",` +
		`"inputSchema":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"server:tool"},` +
		`"args":{"type":"object"},` +
		`"select":` + v.selects() + `,` +
		`"intent_data_sensitivity":{"type":"string","enum":["` + strings.Join(policy.Sensitivities(), `","`) + `"]},` +
		`"intent_reason":{"type":"string","maxLength":1000}` + intent +
		`},"required":[` + required + `]},"annotations":` + v.annotations + `,` + alwaysLoad + `}`
}

// definitions is the array of the tools. A calling tool is there for who has its lane
// or a worse one: a tool may have to be called as less than what it counts as.
func definitions(l listing) string {
	all := []string{retrieveDefinition}
	for _, v := range variants {
		if v.operation <= l.most {
			all = append(all, v.definition(l.intent))
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

// texts are the parts of answers that are the same each time. Nobody writes to
// them.
type texts struct {
	initialize []byte             // what follows the protocol version, up to the instructions
	discover   []byte             // up to the instructions
	front      string             // of modern results
	lists      map[listing][]byte // for who may use all lanes
}

// list returns the list of the tools.
func (t *texts) list(l listing) []byte {
	if text := t.lists[l]; text != nil {
		return text
	}
	tools := `"tools":` + definitions(l)
	if l.modern {
		return []byte(t.front + tools + `,` + caching + `}`)
	}
	return []byte(`{` + tools + `}`)
}

// listing is what the list of the tools depends on.
type listing struct {
	modern, intent bool
	management     config.Management
	most           policy.Operation // the worst lane that the client may use
}

// caching is said of what changes with the configuration only, but may differ
// between clients.
const caching = `"ttlMs":60000,"cacheScope":"private"`

// changing is said of what may change at any time, and differ between clients.
const changing = `,"ttlMs":0,"cacheScope":"private"`

func makeTexts(w *session.ReplyWriter) texts {
	const able = `"capabilities":{"tools":{"listChanged":true}}`
	front := string(w.Front(true))
	t := texts{
		initialize: []byte(`",` + able + `,"serverInfo":` + w.ServerInfo + `,"instructions":`),
		front:      front,
		discover:   []byte(front + `"supportedVersions":` + mcp.Served + `,` + able + `,"instructions":`),
		lists:      map[listing][]byte{},
	}
	for _, intent := range [...]bool{false, true} {
		for _, management := range [...]config.Management{config.ManageOff, config.ManageRead, config.ManagePropose} {
			for _, modern := range [...]bool{false, true} {
				l := listing{modern, intent, management, policy.Destructive}
				t.lists[l] = t.list(l)
			}
		}
	}
	return t
}

// manages reports whether upstream_servers is offered.
func manages(cfg *config.Config) bool {
	return cfg.MCPManagement == config.ManageRead || cfg.MCPManagement == config.ManagePropose
}

// BuiltinDefinitions is the array of the built-in tools as clients see them, with the
// annotations by which they judge them.
func BuiltinDefinitions(management config.Management) json.RawMessage {
	return json.RawMessage(definitions(listing{management: management, most: policy.Destructive}))
}
