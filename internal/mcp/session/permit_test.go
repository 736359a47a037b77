package session

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestZeroPermitAllowsNothing(t *testing.T) {
	var none ToolCallPermit
	for _, name := range []string{"", "t"} {
		if none.Allows(name) {
			t.Errorf("%q is allowed", name)
		}
	}
	no := errors.New("no")
	j := NewToolCallPermit("t", json.RawMessage(`{}`), func() error { return no })
	if !j.Allows("t") || j.Allows("") || j.Allows("T") || j.Recheck() != no || string(j.ListedDefinition()) != "{}" {
		t.Errorf("got %+v", j)
	}
}
