package approval_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/gate/approval"
)

func TestSummarize(t *testing.T) {
	const was = `{"name":"a","title":"A","description":"Reads one file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where."},"n":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`
	for is, want := range map[string]approval.ChangeSummary{
		was: {},
		`{"name":"a","title":"A","description":"Reads one large file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where."},"n":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`: {Description: &approval.WordCount{Added: 1}},
		`{"name":"a","title":"A","description":"Sends mail","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where."},"n":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":false}}`:           {Description: &approval.WordCount{Added: 2, Removed: 3}, Hints: true},
		`{"name":"a","title":"B","description":"Reads one file.","inputSchema":{"type":"object","properties":{"path":{"type":"array","description":"There."},"m":{"type":"integer"}},"required":["path","m"],"$defs":{}},"_meta":{"x":1}}`:             {Parameters: 3, Hints: true, Other: []string{"_meta", "inputSchema", "title"}},
		`{"name":"a","title":"A","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                                                                                                                                                 {Description: &approval.WordCount{Removed: 3}, Parameters: 2},
	} {
		changes, _, err := approval.Diff(json.RawMessage(was), json.RawMessage(is))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, approval.SummarizeDifferences(changes)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", is, d)
		}
	}
}
