package gate

import (
	"encoding/json"
	"testing"
)

// TestRepaired: a tool that a strict client would refuse is one that it takes; all others keep their bytes.
func TestRepaired(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"a", "inputSchema":{"type":"object","required":["x"]}}`:                                  `{"name":"a", "inputSchema":{"type":"object","required":["x"]}}`,
		`{"name":"a","annotations":null,"inputSchema":{"type":"object"}}`:                                 `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{}}`:                                                                   `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","required":null}}`:                                    `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"anyOf":[{"type":"object"}]}}`:                                        `{"name":"a","inputSchema":{"anyOf":[{"type":"object"}],"type":"object"}}`,
		`{"name":"a","inputSchema":null}`:                                                                 `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a"}`:                                                                                    `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","title":null,"outputSchema":null,"inputSchema":{"type":"object","properties":null}}`: `{"name":"a","inputSchema":{"type":"object"}}`,
	} {
		if got := string(repairToolDefinition(json.RawMessage(raw))); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
