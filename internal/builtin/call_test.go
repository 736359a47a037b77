package builtin

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
)

// What a calling tool's parameters become.
func TestReadCall(t *testing.T) {
	text := func(s string) *string { return &s }
	type request = gateway.CallRequest
	type declared = policy.Declared
	for _, tt := range []struct {
		args string
		want request
	}{
		{`{}`, request{}},
		{`{"name":"a:b"}`, request{Name: "a:b"}},
		{`{"name":"a:b/c:d.\u00e9"}`, request{Name: "a:b/c:d.é"}},
		{`{"name":42}`, request{Name: "42"}},
		{`{"name":{"a":1}}`, request{Name: `{"a":1}`}},
		{`{"name":null}`, request{}},
		{`{"name":"a:b","args":{"x": 9007199254740993}}`, request{Name: "a:b", Args: json.RawMessage(`{"x": 9007199254740993}`)}},
		{`{"args":[1]}`, request{Args: json.RawMessage(`[1]`)}},
		{`{"args":"{}"}`, request{Args: json.RawMessage(`"{}"`)}},
		{`{"args":null,"args_json":null}`, request{}},
		{`{"args_json":"{\"a\":1}"}`, request{ArgsJSON: text(`{"a":1}`)}},
		{`{"args_json":""}`, request{ArgsJSON: text("")}},
		{`{"args":{},"args_json":"{}"}`, request{Args: json.RawMessage(`{}`), ArgsJSON: text("{}")}},
		{`{"args_json":{"a":1}}`, request{ArgsProblem: "args_json must be a string that holds the arguments as JSON; give an object as args"}},
		{`{"args_json":5}`, request{ArgsProblem: "args_json must be a string that holds the arguments as JSON; give an object as args"}},
		{`{"unknown":1,"limit":"x"}`, request{}},

		{`{"intent_reason":"why","intent_data_sensitivity":"private"}`,
			request{Declared: declared{HasReason: true, Reason: "why", HasSensitivity: true, DataSensitivity: "private"}}},
		{`{"intent_reason":null}`, request{}},
		{`{"intent":null}`, request{}},
		{`{"intent":{"operation_type":"read"}}`, request{Declared: declared{Present: true, HasOperation: true, OperationType: "read"}}},
		{`{"intent":"read"}`, request{Declared: declared{Present: true, Malformed: policy.IntentNotObject}}},
	} {
		var got request
		readCall([]byte(tt.args), &got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.args, diff)
		}
	}
}
