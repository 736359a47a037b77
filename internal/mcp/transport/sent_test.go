package transport

import (
	"encoding/json"
	"testing"
)

// TestNamesWithEscapes: a slash in a name is often escaped; it is the same name.
func TestNamesWithEscapes(t *testing.T) {
	if id, ok := subscriptionID(json.RawMessage(`{"_meta":{"io.modelcontextprotocol\/subscriptionId":7}}`)); id != 7 || !ok {
		t.Errorf("subscription %d %t", id, ok)
	}
}
