//go:build unix

package upstream

import (
	"encoding/json"
	"testing"
)

func TestReadGreeting(t *testing.T) {
	bad := []string{`[]`, `null`, `{}`, `{"protocolVersion":1}`, `{"protocolVersion":"2030-01-01"}`, `{"ProtocolVersion":"2025-11-25"}`}
	for _, raw := range bad {
		if g, err := parseInitializeResult(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: %+v", raw, g)
		}
	}
	for _, v := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"} {
		g, err := parseInitializeResult(json.RawMessage(`{"protocolVersion":"` + v + `","capabilities":{"tools":{}},"instructions":5}`))
		if err != nil || g.Version != v || !g.hasTools || g.announcesTools || g.Instructions != "" {
			t.Errorf("%s: %+v, error %v", v, g, err)
		}
	}
}
