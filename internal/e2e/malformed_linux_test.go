//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

const objectSchema = `"inputSchema":{"type":"object"}`

// goodTools have handlers. They are in the lanes read, write, destructive and, without hints, write.
var goodTools = []string{
	`{"name":"a","description":"Counts the apples.",` + objectSchema + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"b","description":"Buys apples.",` + objectSchema + `,"annotations":{"readOnlyHint":false,"destructiveHint":false}}`,
	`{"name":"c","description":"Deletes the apples.",` + objectSchema + `,"annotations":{"destructiveHint":true}}`,
	`{"name":"d","description":"Does things with apples.",` + objectSchema + `}`,
}

// repairedTools are malformed definitions that MCPProxy repairs and lists.
var repairedTools = []string{
	`{"name":"r1"}`, `{"name":"r2","inputSchema":null}`, `{"name":"r3","inputSchema":{}}`, `{"name":"r4","inputSchema":[]}`, `{"name":"r5","inputSchema":{"type":"OBJECT"}}`,
	`{"name":"r6","inputSchema":{"type":["object","null"]}}`, `{"name":"r7","inputSchema":{"anyOf":[{"required":["x"]}]}}`, `{"name":"r8","inputSchema":{"type":"object","required":null,"properties":null}}`,
	`{"name":"r9","inputSchema":{"type":"object","required":{},"properties":[]}}`, `{"name":"s1",` + objectSchema + `,"annotations":null,"title":null,"_meta":null,"icons":null}`,
	`{"name":"s2",` + objectSchema + `,"annotations":[],"_meta":[],"icons":{}}`, `{"name":"s3",` + objectSchema + `,"outputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}}}`,
	`{"name":"s4",` + objectSchema + `,"outputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"("}}}}`, `{"name":"s5",` + objectSchema + `,"outputSchema":{"type":"object","required":"x"}}`,
	`{"name":"s6",` + objectSchema + `,"outputSchema":true}`, `{"name":"s7",` + objectSchema + `,"outputSchema":{"type":"array","items":{}}}`, `{"name":"s8","inputSchema":{"type":"object","properties":{"x":true,"y":false}}}`,
	`{"name":"s9",` + objectSchema + `,"outputSchema":{"type":"object","maximum":1e999}}`, `{"name":"v1","inputSchema":{"type":"object","$schema":null}}`, `{"name":"v2",` + objectSchema + `,"outputSchema":{"type":"object","$schema":5}}`,
	`{"name":"v3",` + objectSchema + `,"outputSchema":{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}}`,
	`{"name":"v4","inputSchema":{"type":"object","properties":{"x":{"$ref":"#"}}},"description":"half a pair: \ud83d"}`,
	`{"name":"v5","inputSchema":{"type":"object","properties":{"__proto__":{},"constructor":{},"x":{"minimum":-0,"const":"NaN"}}}}`,
	`{"name":"app",` + objectSchema + `,"_meta":{"ui":{"resourceUri":"ui://a b/x"}}}`, `{"name":"x.y",` + objectSchema + `}`, `{"name":"a b/ü",` + objectSchema + `}`, `{"name":"\u202e\n😀",` + objectSchema + `}`, `{"name":"__proto__",` + objectSchema + `}`,
	`{"name":"` + strings.Repeat("n", 100) + `",` + objectSchema + `}`,
	`{"name":"deep","inputSchema":{"type":"object","properties":{"x":` + strings.Repeat(`{"items":`, 100) + "{}" + strings.Repeat("}", 100) + `}}}`,
}

// leftOutTools are malformed definitions that MCPProxy leaves out, by the expected warning.
var leftOutTools = map[string]string{
	"'t1'": `{"name":"t1","inputSchema":"{}"}`, "'t2'": `{"name":"t2","inputSchema":{"type":"string"}}`, "'t3'": `{"name":"t3","inputSchema":{"type":"object","required":"x"}}`,
	"'t4'": `{"name":"t4","inputSchema":{"type":"object","required":[1]}}`, "'t5'": `{"name":"t5","inputSchema":{"type":"object","properties":["x"]}}`,
	"'t6'": `{"name":"t6","inputSchema":{"type":"object","properties":{"x":"text"}}}`, "'t7'": `{"name":"t7",` + objectSchema + `,"description":{"en":"x"}}`,
	"'t8'": `{"name":"t8",` + objectSchema + `,"title":5}`, "'t9'": `{"name":"t9",` + objectSchema + `,"annotations":{"readOnlyHint":"yes"}}`, "'u1'": `{"name":"u1",` + objectSchema + `,"annotations":"none"}`,
	"'u2'": `{"name":"u2",` + objectSchema + `,"icons":"x.png"}`, "'u3'": `{"name":"u3",` + objectSchema + `,"icons":[{"src":7}]}`, "'u4'": `{"name":"u4",` + objectSchema + `,"_meta":"x"}`,
	"'u5'": `{"name":"u5",` + objectSchema + `,"execution":{"taskSupport":"maybe"}}`, "'u6'": `{"name":"u6","inputSchema":{"type":"object","$schema":5}}`,
	"'u7'": `{"name":"u7","description":"Apples beyond measure.","inputSchema":{"type":"object","properties":{"apples":{"maximum":1e999}}}}`,
	"'u8'": `{"name":"u8",` + objectSchema + `,"_meta":{"n":-1` + strings.Repeat("0", 400) + `}}`, "'u9'": `{"name":"u9","inputSchema":{"type":["array","null"]}}`,
	"its name is missing": `{"name":7,` + objectSchema + `}`,
	"it is not an object": `"tool"`,
	"members named":       `{"name":"twice","name":"twice",` + objectSchema + `}`,
	"the same name: a":    `{"name":"a",` + objectSchema + `}`,
	"nested deeper":       `{"name":"deeper","inputSchema":{"type":"object","x":` + strings.Repeat("[", 130) + strings.Repeat("]", 130) + `}}`,
	"longer than 262144":  `{"name":"large","description":"` + strings.Repeat("large ", 50_000) + `",` + objectSchema + `}`,
}

// Prompts, resources and templates: first those that are listed, then those that are left out, by the expected warning.
var (
	listedPrompts = `{"name":"good","arguments":[{"name":"x","title":"X","required":true}]},{"name":"empty","arguments":{}},{"name":"none","arguments":null,"title":null,"icons":null},{"name":"x.y"}`

	leftOutPrompts = map[string]string{
		"'p1'": `{"name":"p1","arguments":{"x":1}}`, "'p2'": `{"name":"p2","arguments":[{"name":"x","title":5}]}`, "'p3'": `{"name":"p3","arguments":[{"name":5}]}`, "'p4'": `{"name":"p4","icons":[{}]}`,
		"'p5'": `{"name":"p5","_meta":{"n":1e400}}`, "another one has the same name": `{"name":"good"}`, "its name is missing": `{"name":["p6"]}`,
	}

	listedResources = `{"uri":"good://x","name":"x","size":3},{"uri":"users/me","name":null},{"uri":"ui://a b/x","name":"app"},{"uri":"http://a b/","name":"space"},{"uri":"http://256.1.1.1/","name":"address"},{"uri":"good://h:99999/","name":"port"},
		{"uri":"good://half","name":"half","size":1.5,"annotations":{"lastModified":"2025-01-01t00:00:00z"}},{"uri":"good://large","name":"large","size":1e30}`

	leftOutResources = map[string]string{
		"'bad://1'": `{"uri":"bad://1","name":"b","size":"3"}`, "'bad://2'": `{"uri":"bad://2","name":"b","annotations":{"priority":7}}`, "'bad://3'": `{"uri":"bad://3","name":"b","annotations":{"priority":"NaN"}}`,
		"'bad://4'": `{"uri":"bad://4","name":5}`, "'bad://5'": `{"uri":"bad://5","name":"b","annotations":{"audience":["model"]}}`, "its uri is missing": `{"uri":5,"name":"b"}`, "another one has the same uri": `{"uri":"good://x","name":"again"}`,
	}

	listedTemplates  = `{"uriTemplate":"good://t/{id}","name":"t"},{"uriTemplate":"good://name/{x}"}`
	leftOutTemplates = map[string]string{"'bad://{1}'": `{"uriTemplate":"bad://{1}","name":"b","mimeType":["text/plain"]}`, "its uriTemplate is missing": `{"uriTemplate":null,"name":"b"}`}
)

// malformedLists is what clients should get on one surface, sorted.
type malformedLists struct{ Tools, Prompts, Resources, Templates []string }

// malformedSurfaces returns the lists of each surface that combines servers.
func malformedSurfaces() map[string]malformedLists {
	all := malformedLists{
		Prompts:   []string{"s__empty", "s__good", "s__none", tool.ToAlias("s", "x.y")},
		Resources: []string{"good://half", "good://large", "good://x", "mcpproxy://s/good://h:99999/", "mcpproxy://s/http://256.1.1.1/", "mcpproxy://s/http://a b/", "mcpproxy://s/users/me", "ui://mcpproxy/s/a b/x"},
		Templates: []string{"good://name/{x}", "good://t/{id}"},
	}
	read, write, destructive := all, malformedLists{Tools: []string{"s__b", "s__d"}}, malformedLists{Tools: []string{"s__c"}}
	read.Tools = []string{"s__a"}
	for _, definition := range repairedTools {
		name, _ := wirejson.String(wirejson.Find([]byte(definition), "name"))
		write.Tools = append(write.Tools, tool.ToAlias("s", name))
	}
	all.Tools = slices.Concat(read.Tools, write.Tools, destructive.Tools)
	surfaces := map[string]malformedLists{}
	for path, want := range map[string]malformedLists{"/all": all, "/all/read": read, "/all/write": write, "/all/destructive": destructive} {
		slices.Sort(want.Tools)
		surfaces["/mcp"+path], surfaces["/mcp/p/few"+path] = want, want
	}
	return surfaces
}

// malformedDaemon starts a server with malformed definitions among good ones.
func malformedDaemon(t *testing.T) *daemon {
	t.Helper()
	list := func(member, listed string, leftOut map[string]string) string {
		for _, definition := range leftOut {
			listed += "," + definition
		}
		return `{"` + member + `":[` + listed + `]}`
	}
	results := map[string]string{
		"tools/list":               list("tools", strings.Join(append(slices.Clone(goodTools), repairedTools...), ","), leftOutTools),
		"prompts/list":             list("prompts", listedPrompts, leftOutPrompts),
		"resources/list":           list("resources", listedResources, leftOutResources),
		"resources/templates/list": list("resourceTemplates", listedTemplates, leftOutTemplates),
		"tools/call":               `{"content":[{"type":"text","text":"well","annotations":null},{"type":"error","text":"odd"}],"_meta":null,"structuredContent":null}`,
	}
	url := oddServer(t, mcptest.Options{Capabilities: `{"tools":{},"prompts":{},"resources":{}}`}, func(m *wirejson.Message, _ http.Header, body []byte) []byte {
		if results[m.Method] == "" {
			return body
		}
		return wirejson.AppendResult(nil, m.ID, json.RawMessage(results[m.Method]))
	})
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]string{"url": url, "trust": "auto"}}, "profiles": map[string]any{"few": map[string]any{"servers": []string{"s"}}}})
	d := startDaemon(t, string(config))
	d.awaitTools("s:d")
	return d
}

// listMethods contains the member and the schema of each list.
var listMethods = map[string]struct{ member, key, schema string }{
	"tools/list":               {"tools", "name", "ListToolsResult"},
	"prompts/list":             {"prompts", "name", "ListPromptsResult"},
	"resources/list":           {"resources", "uri", "ListResourcesResult"},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", "ListResourceTemplatesResult"},
}

// TestMalformedDefinitionsHarmOnlyThemselves: surfaces that combine servers repair or omit definitions that strict
// clients reject. The official client in Go lists and calls all others. The lists are valid in all revisions of the
// protocol, and names are valid for the APIs of models. A warning names each omitted definition, but no model sees it.
func TestMalformedDefinitionsHarmOnlyThemselves(t *testing.T) {
	t.Parallel()
	d := malformedDaemon(t)
	for path, want := range malformedSurfaces() {
		for _, version := range []string{legacyRevision, modernRevision} {
			if got := d.listWithSDK(path, version); !equalLists(got, want) {
				t.Errorf("%s %s:\n got %q\nwant %q", path, version, got, want)
			}
			d.checkListSchemas(path, version, want)
		}
		client := d.sdkAt(path, legacyRevision, nil)
		for _, name := range want.Tools {
			if server, own, _ := tool.SplitAlias(name); server == "s" && len(own) == 1 {
				got, err := client.CallTool(within(t), &mcp.CallToolParams{Name: name})
				if err != nil || got.IsError || len(got.Content) != 2 {
					t.Errorf("%s %s: %+v, %v", path, name, got, err)
				}
			}
		}
	}
	for _, former := range []string{"s__x.y", "s__" + strings.Repeat("n", 100), tool.FormerAlias("s", "a b/ü")} {
		if got, err := d.sdkAt("/mcp/all", legacyRevision, nil).CallTool(within(t), &mcp.CallToolParams{Name: former}); err != nil || got.IsError {
			t.Errorf("the name of earlier versions, %s: %+v, %v", former, got, err)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/p/few"} {
		d.checkMalformedSearch(path)
	}
	_, get, _ := d.cli("upstream", "get", "s")
	_, doctor, _ := d.cli("doctor")
	for _, leftOut := range []map[string]string{leftOutTools, leftOutPrompts, leftOutResources, leftOutTemplates} {
		for warning := range leftOut {
			if !strings.Contains(get, warning) || !strings.Contains(doctor, warning) {
				t.Errorf("no warning about %s in\n%s\n%s", warning, get, doctor)
			}
		}
	}
}

func equalLists(a, b malformedLists) bool {
	return slices.Equal(a.Tools, b.Tools) && slices.Equal(a.Prompts, b.Prompts) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Templates, b.Templates)
}

// listWithSDK returns the lists that the official client in Go gets.
func (d *daemon) listWithSDK(path, version string) (got malformedLists) {
	d.t.Helper()
	client := d.sdkAt(path, version, nil)
	ctx := within(d.t)
	for one, err := range client.Tools(ctx, nil) {
		if err != nil {
			d.t.Errorf("%s %s: tools: %v", path, version, err)
			return got
		}
		got.Tools = append(got.Tools, one.Name)
	}
	if client.InitializeResult().Capabilities.Prompts == nil {
		return got
	}
	prompts, err := client.ListPrompts(ctx, nil)
	if err != nil {
		d.t.Errorf("%s %s: prompts: %v", path, version, err)
		return got
	}
	resources, err := client.ListResources(ctx, nil)
	if err != nil {
		d.t.Errorf("%s %s: resources: %v", path, version, err)
		return got
	}
	templates, err := client.ListResourceTemplates(ctx, nil)
	if err != nil {
		d.t.Errorf("%s %s: templates: %v", path, version, err)
		return got
	}
	for _, one := range prompts.Prompts {
		got.Prompts = append(got.Prompts, one.Name)
	}
	for _, one := range resources.Resources {
		got.Resources = append(got.Resources, one.URI)
	}
	for _, one := range templates.ResourceTemplates {
		got.Templates = append(got.Templates, one.URITemplate)
	}
	return got
}

var modelToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkListSchemas validates the lists of a surface against the schemas of the protocol. testdata/protocol-lists.json
// has the parts of the published schemas that describe lists, without descriptions.
func (d *daemon) checkListSchemas(path, version string, want malformedLists) {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "protocol-lists.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	var revisions map[string]json.RawMessage
	if err := json.Unmarshal(text, &revisions); err != nil {
		d.t.Fatal(err)
	}
	ask := d.requests(path, version)
	for method, list := range listMethods {
		if list.member != "tools" && want.Prompts == nil {
			continue
		}
		result := ask(method, "", "")
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(result))
		if err != nil {
			d.t.Fatal(err)
		}
		for revision, schemas := range revisions {
			if (revision == modernRevision) != (version == modernRevision) {
				continue
			}
			definitions := "definitions"
			if wirejson.Find(schemas, "$defs") != nil {
				definitions = "$defs"
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas))
			if err != nil {
				d.t.Fatal(err)
			}
			c := jsonschema.NewCompiler()
			if err := c.AddResource("protocol.json", doc); err != nil {
				d.t.Fatal(err)
			}
			schema, err := c.Compile("protocol.json#/" + definitions + "/" + list.schema)
			if err != nil {
				d.t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				d.t.Errorf("%s %s: %s is invalid in %s: %v", path, version, method, revision, err)
			}
		}
		_ = wirejson.EachElement(wirejson.Find(result, list.member), func(one []byte) error {
			name, _ := wirejson.String(wirejson.Find(one, list.key))
			if u, err := url.Parse(name); list.key == "uri" && (err != nil || !u.IsAbs()) || list.key == "name" && !modelToolName.MatchString(name) {
				d.t.Errorf("%s: clients reject %q", method, name)
			}
			return nil
		})
	}
}

// checkMalformedSearch checks that the official client can read search results with malformed definitions, and that it
// can call the tools that it finds. No model sees names in warnings, which no user has approved.
func (d *daemon) checkMalformedSearch(path string) {
	d.t.Helper()
	for _, version := range []string{legacyRevision, modernRevision} {
		client := d.sdkAt(path, version, nil)
		found, err := client.CallTool(within(d.t), &mcp.CallToolParams{Name: "retrieve_tools", Arguments: map[string]any{"query": "apples", "limit": 100, "detail": "full"}})
		if text, _ := json.Marshal(found); err != nil || found.IsError || !bytes.Contains(text, []byte(`"s:a"`)) || !bytes.Contains(text, []byte(`"s:d"`)) || !bytes.Contains(text, []byte(`"s:u7"`)) {
			d.t.Errorf("%s %s: %s, %v", path, version, text, err)
		}
		for name, callTool := range map[string]string{"s:a": "call_tool_read", "s:b": "call_tool_write", "s:c": "call_tool_destructive", "s:d": "call_tool_write"} {
			got, err := client.CallTool(within(d.t), &mcp.CallToolParams{Name: callTool, Arguments: map[string]any{"name": name, "args": map[string]any{}}})
			if err != nil || got.IsError {
				d.t.Errorf("%s %s: %+v, %v", path, name, got, err)
			}
		}
		servers, err := client.CallTool(within(d.t), &mcp.CallToolParams{Name: "upstream_servers", Arguments: map[string]any{"operation": "get", "name": "s"}})
		if text, _ := json.Marshal(servers); err != nil || servers.IsError || bytes.Contains(text, []byte("'t1'")) {
			d.t.Errorf("a model sees names that no user has approved: %s, %v", text, err)
		}
	}
}
