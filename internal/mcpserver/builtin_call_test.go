package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
)

// How the parameters of a calling tool are interpreted.
func TestReadCall(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	stray := func(name, value string) []gate.UnknownArgument {
		return []gate.UnknownArgument{{Name: name, Value: raw(value)}}
	}
	type request = gate.LaneCall
	type declared = policy.DeclaredIntent
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
		{`{"args_json":"{\"a\":1}"}`, request{ArgsJSON: raw(`"{\"a\":1}"`)}},
		{`{"args":{},"args_json":"{}"}`, request{Args: raw(`{}`), ArgsJSON: raw(`"{}"`)}},
		{`{"args_json":{"a":1}}`, request{ArgsJSON: raw(`{"a":1}`)}},
		{`{"args_json":5}`, request{ArgsJSON: raw(`5`)}},
		{`{"unknown":null,"limit":"x"}`, request{Unknown: stray("limit", `"x"`)}},
		{`{"\u0061rguments":{"a": 1}}`, request{Unknown: stray("arguments", `{"a": 1}`)}},

		{`{"intent_reason":"why","intent_data_sensitivity":"private"}`,
			request{Declared: declared{HasReason: true, Reason: "why", HasSensitivity: true, DataSensitivity: "private"}}},
		{`{"intent_reason":null}`, request{}},
		{`{"intent":null}`, request{}},
		{`{"intent":{"operation_type":"read"}}`, request{Declared: declared{Present: true, HasOperation: true, OperationType: "read"}}},
		{`{"intent":"read"}`, request{Declared: declared{Present: true, HasOperation: true, OperationType: "read"}}},
		{`{"intent":["read"]}`, request{Declared: declared{Present: true, Malformed: policy.IntentNotObject}}},
		{`{"intent_operation_type":"read"}`, request{Declared: declared{HasOperation: true, OperationType: "read"}}},
	} {
		var got request
		parseCallArguments([]byte(tt.args), &got)
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(declared{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.args, diff)
		}
	}
}

// TestUnknownArgumentsAreBounded: the size of passed parameters that no tool has is limited.
func TestUnknownArgumentsAreBounded(t *testing.T) {
	var args strings.Builder
	for i := range 10 * maxUnknown {
		fmt.Fprintf(&args, `"p%d":1,`, i)
	}
	var got gate.LaneCall
	parseCallArguments([]byte(`{`+args.String()+`"name":"a:b"}`), &got)
	if len(got.Unknown) != maxUnknown || got.Name != "a:b" {
		t.Errorf("%d of them, name %q", len(got.Unknown), got.Name)
	}
}
