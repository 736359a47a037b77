package classify

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/gate/policy"
)

// TestSharedCases classifies the texts of ../shared/cases/lanes.jsonl. Each must get at least the wanted lane, and a
// text that should be a read must be classified as one.
func TestSharedCases(t *testing.T) {
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	file, err := os.Open(filepath.Join(shared, "cases", "lanes.jsonl"))
	if err != nil {
		t.Skipf("the shared test data is missing: %v", err)
	}
	defer file.Close()
	rules := map[string]ArgumentRule{
		"sql":     {By: policy.BySQL, Argument: "$.command"},
		"shell":   {By: policy.ByShell, Argument: "$.command"},
		"graphql": {By: policy.ByGraphQL, Argument: "$.command"},
	}
	operations := map[string]policy.Operation{"read": policy.Read, "write": policy.Write, "destructive": policy.Destructive}
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var c struct {
			By, Text, Want string
			Arguments      json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		rule, known := rules[c.By]
		want, sound := operations[c.Want]
		if !known || !sound {
			t.Fatalf("%s: an unknown by or want", lines.Bytes())
		}
		if c.Arguments == nil {
			c.Arguments, _ = json.Marshal(map[string]string{"command": c.Text}) // cannot fail: strings can always be encoded
		}
		if got := rule.Classify(c.Arguments).Operation; got < want || want == policy.Read && got != want {
			t.Errorf("%s %s: %s, want %s", c.By, c.Arguments, got, c.Want)
		}
	}
	if n == 0 {
		t.Error("no cases")
	}
}
