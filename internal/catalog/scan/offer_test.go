package scan

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

// offerPlacements are where an offer can hold a text that a model may read, as
// placements are for tools.
var offerPlacements = map[string]struct {
	kind     tool.DefinitionKind
	template string
}{
	"prompt description":         {tool.KindPrompt, `{"name":"add","description":"%s"}`},
	"prompt title":               {tool.KindPrompt, `{"name":"add","title":"%s"}`},
	"argument name":              {tool.KindPrompt, `{"name":"add","arguments":[{"name":"%s"}]}`},
	"argument title":             {tool.KindPrompt, `{"name":"add","arguments":[{"name":"a","title":"%s"}]}`},
	"argument description":       {tool.KindPrompt, `{"name":"add","arguments":[{"name":"a","description":"%s","required":true}]}`},
	"prompt icon":                {tool.KindPrompt, `{"name":"add","icons":[{"src":"x:","mimeType":"%s"}]}`},
	"prompt meta":                {tool.KindPrompt, `{"name":"add","_meta":{"x/y":["%s"]}}`},
	"prompt unknown":             {tool.KindPrompt, `{"name":"add","extra":{"%s":1}}`},
	"resource name":              {tool.KindResource, `{"uri":"a://b","name":"%s"}`},
	"resource title":             {tool.KindResource, `{"uri":"a://b","name":"n","title":"%s"}`},
	"resource description":       {tool.KindResource, `{"uri":"a://b","name":"n","description":"%s"}`},
	"resource mimeType":          {tool.KindResource, `{"uri":"a://b","name":"n","mimeType":"%s"}`},
	"resource size":              {tool.KindResource, `{"uri":"a://b","name":"n","size":"%s"}`},
	"resource date":              {tool.KindResource, `{"uri":"a://b","name":"n","annotations":{"lastModified":"%s"}}`},
	"resource audience":          {tool.KindResource, `{"uri":"a://b","name":"n","annotations":{"audience":["%s"]}}`},
	"resource meta":              {tool.KindResource, `{"uri":"a://b","name":"n","_meta":{"%s":1}}`},
	"template name":              {tool.KindTemplate, `{"uriTemplate":"a://{b}","name":"%s"}`},
	"template description":       {tool.KindTemplate, `{"uriTemplate":"a://{b}","name":"n","description":"%s"}`},
	"template expression":        {tool.KindTemplate, `{"uriTemplate":"a://{%s}","name":"n"}`},
	"address":                    {tool.KindResource, `{"uri":"a://b/%s","name":"n"}`},
	"instructions":               {tool.KindInstructions, `"%s"`},
	"instructions in an object":  {tool.KindInstructions, `{"text":"%s"}`},
	"instructions behind others": {tool.KindInstructions, `"Use the tools of this server for notes.\n\n%s"`},
}

// TestPrimitivePlacements: the scanner finds a text in every field of a prompt, a resource, a template or instructions.
func TestPrimitivePlacements(t *testing.T) {
	for where, p := range offerPlacements {
		t.Run(where, func(t *testing.T) {
			found := 0
			for _, seed := range seeds {
				text, err := json.Marshal(seed)
				if err != nil {
					t.Fatal(err)
				}
				o, err := tool.ParsePrimitive(p.kind, json.RawMessage(strings.Replace(p.template, "%s", string(text[1:len(text)-1]), 1)))
				if err != nil {
					t.Fatal(err)
				}
				if scanPrimitive(o).Verdict != Clean {
					found++
				} else {
					t.Logf("missed: %s", seed)
				}
			}
			if floor := 95; found*100 < len(seeds)*floor {
				t.Errorf("%d of %d found", found, len(seeds))
			}
		})
	}
}

// TestAddressPlacement: an address is scanned in its decoded form, too.
func TestAddressPlacement(t *testing.T) {
	found := 0
	for _, seed := range seeds {
		raw := `{"name":"n","uri":"notes://` + url.PathEscape(seed) + `"}`
		o, err := tool.ParsePrimitive(tool.KindResource, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if scanPrimitive(o).Verdict != Clean {
			found++
		} else {
			t.Logf("missed: %s", raw)
		}
	}
	if found*100 < len(seeds)*80 {
		t.Errorf("%d of %d found", found, len(seeds))
	}
}

// TestHonestPrimitives: prompts, resources and instructions of honest servers give no finding.
func TestHonestPrimitives(t *testing.T) {
	for _, c := range []struct {
		kind tool.DefinitionKind
		raw  string
	}{
		{tool.KindPrompt, `{"name":"simple-prompt","title":"Simple Prompt","description":"A prompt with no arguments"}`},
		{tool.KindPrompt, `{"name":"code_review","title":"Request Code Review","description":"Asks the LLM to analyze code quality and suggest improvements","arguments":[{"name":"code","description":"The code to review","required":true}],"icons":[{"src":"https://example.com/review-icon.svg","mimeType":"image/svg+xml","sizes":["any"]}]}`},
		{tool.KindPrompt, `{"name":"git-commit","description":"Generate a Git commit message","arguments":[{"name":"changes","description":"Git diff or description of changes","required":true}]}`},
		{tool.KindPrompt, `{"name":"summarize_issue","description":"Read an issue with its comments and write a summary of at most ten lines.","arguments":[{"name":"owner"},{"name":"repo"},{"name":"number","required":true}]}`},
		{tool.KindPrompt, `{"name":"debug-error","description":"Start a debugging session for an error message","arguments":[{"name":"error","description":"The error, as it was printed"}]}`},
		{tool.KindResource, `{"uri":"file:///project/src/main.rs","name":"main.rs","title":"Rust Software Application Main File","description":"Primary application entry point","mimeType":"text/x-rust","size":1024,"annotations":{"audience":["user","assistant"],"priority":0.8,"lastModified":"2025-01-12T15:00:58Z"}}`},
		{tool.KindResource, `{"uri":"demo://resource/static/document/architecture.md","name":"architecture.md","mimeType":"text/markdown","description":"Static document file exposed from /docs: architecture.md"}`},
		{tool.KindResource, `{"uri":"postgres://user@host:5432/table/customers/schema","mimeType":"application/json","name":"\"customers\" database schema"}`},
		{tool.KindResource, `{"uri":"memo://insights","name":"Business Insights Memo","description":"A living document of discovered business insights","mimeType":"text/plain"}`},
		{tool.KindResource, `{"uri":"https://api.example.com/v1/reports/2025?format=csv&limit=100","name":"Report 2025","mimeType":"text/csv"}`},
		{tool.KindResource, `{"uri":"console://logs","mimeType":"text/plain","name":"Browser console logs"}`},
		{tool.KindResource, `{"uri":"ui://widget/chart.html","name":"chart","mimeType":"text/html;profile=mcp-app","_meta":{"ui":{"csp":{"connectDomains":["https://api.example.com"]},"prefersBorder":true}}}`},
		{tool.KindResource, `{"uri":"gdrive:///1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms","mimeType":"application/vnd.google-apps.spreadsheet","name":"Budget 2025 (final).xlsx"}`},
		{tool.KindTemplate, `{"uriTemplate":"demo://resource/dynamic/text/{resourceId}","name":"Dynamic Text Resource","mimeType":"text/plain","description":"Plaintext dynamic resource fabricated from the {resourceId} variable, which must be an integer."}`},
		{tool.KindTemplate, `{"uriTemplate":"repo://{owner}/{repo}/contents{/path*}","name":"Repository Content"}`},
		{tool.KindTemplate, `{"uriTemplate":"file:///{+path}","name":"Project Files","title":"Project Files","description":"Access files in the project directory","mimeType":"application/octet-stream"}`},
		{tool.KindInstructions, `"Testing and demonstration server for MCP protocol features.\n\n## Getting started\nUse ` + "`echo`" + ` to see whether the connection works. Resources of the form demo://resource/{id} can be read."`},
		{tool.KindInstructions, `"The GitHub MCP Server provides tools to interact with the GitHub platform. Use list_* tools for broad retrieval, search_* for targeted queries. Prefer pagination with 5-10 items per call."`},
		{tool.KindInstructions, `"Use this server to retrieve up-to-date documentation and code examples for any library."`},
	} {
		o, err := tool.ParsePrimitive(c.kind, json.RawMessage(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		if r := scanPrimitive(o); r.Verdict != Clean {
			t.Errorf("%s: %+v", c.raw, r)
		}
	}
}
