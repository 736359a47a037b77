package transport

import (
	"encoding/json"
	"testing"
)

// TestNamesWithEscapes checks that a name with an escaped slash is recognized, because a slash is often escaped.
func TestNamesWithEscapes(t *testing.T) {
	if id, ok := subscriptionID(json.RawMessage(`{"_meta":{"io.modelcontextprotocol\/subscriptionId":7}}`)); id != 7 || !ok {
		t.Errorf("subscription %d %t", id, ok)
	}
}
