package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

func TestAdd(t *testing.T) {
	for _, c := range []struct {
		name, parameters string
		want             policy.DeclaredIntent
	}{
		{"nothing", `{"name":"a:b","args":{}}`, policy.DeclaredIntent{}},
		{"all nested", `{"intent":{"operation_type":"read","data_sensitivity":"internal","reason":"why"}}`,
			policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", HasSensitivity: true, DataSensitivity: "internal", HasReason: true, Reason: "why"}},
		{"flat", `{"intent_data_sensitivity":"public","intent_reason":"why"}`,
			policy.DeclaredIntent{HasSensitivity: true, DataSensitivity: "public", HasReason: true, Reason: "why"}},
		{"prefixed within", `{"intent":{"intent_data_sensitivity":"public","intent_reason":"why"}}`,
			policy.DeclaredIntent{Present: true, HasSensitivity: true, DataSensitivity: "public", HasReason: true, Reason: "why"}},
		{"an empty object", `{"intent":{}}`, policy.DeclaredIntent{Present: true}},
		{"unknown members", `{"intent":{"operation":"read","x":1}}`, policy.DeclaredIntent{Present: true}},
		{"null says nothing", `{"intent":null,"intent_reason":null}`, policy.DeclaredIntent{HasReason: true}},
		{"nor does a null within", `{"intent":{"operation_type":null,"reason":null}}`, policy.DeclaredIntent{Present: true, HasReason: true}},
		{"said twice alike", `{"intent":{"reason":"why"},"intent_reason":"why"}`, policy.DeclaredIntent{Present: true, HasReason: true, Reason: "why"}},
		{"said once and once empty", `{"intent_reason":"","intent":{"reason":"why"}}`, policy.DeclaredIntent{Present: true, HasReason: true, Reason: "why"}},
		{"said twice differently", `{"intent_reason":"because","intent":{"reason":"why"}}`,
			policy.DeclaredIntent{Present: true, HasReason: true, Reason: "because", Malformed: policy.FieldsDifferText("intent.reason", "intent_reason")}},
		{"an empty operation says nothing", `{"intent":{"operation_type":""},"intent_operation_type":""}`, policy.DeclaredIntent{Present: true}},
		{"a flat operation", `{"intent_operation_type":"write"}`, policy.DeclaredIntent{HasOperation: true, OperationType: "write"}},
		{"no flat operation", `{"intent_operation_type":null}`, policy.DeclaredIntent{}},
		{"a prefixed operation within", `{"intent":{"intent_operation_type":"write"}}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "write"}},
		{"two operations alike", `{"intent":{"operation_type":"read"},"intent_operation_type":"read"}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read"}},
		{"two operations that differ", `{"intent":{"operation_type":"read"},"intent_operation_type":"write"}`,
			policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", Malformed: policy.FieldsDifferText("intent.operation_type", "intent_operation_type")}},
		{"the same the other way round", `{"intent_operation_type":"write","intent":"read"}`,
			policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "write", Malformed: policy.FieldsDifferText("intent.operation_type", "intent_operation_type")}},
		{"an operation that is no string", `{"intent":{"operation_type":["read"]}}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: `["read"]`}},
		{"a reason that is no string", `{"intent":{"reason":5}}`, policy.DeclaredIntent{Present: true, HasReason: true, Malformed: policy.FieldNotStringText("intent.reason")}},
		{"a sensitivity that is no string", `{"intent_data_sensitivity":{}}`, policy.DeclaredIntent{HasSensitivity: true, Malformed: policy.FieldNotStringText("intent_data_sensitivity")}},
		{"an intent that is a string", `{"intent":"read"}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read"}},
		{"an intent that is an empty string", `{"intent":""}`, policy.DeclaredIntent{}},
		{"an intent that is a sentence", `{"intent":"to look"}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "to look"}},
		{"an intent as JSON text", `{"intent":" {\"operation_type\":\"read\",\"reason\":\"why\"}"}`,
			policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", HasReason: true, Reason: "why"}},
		{"an intent as text that says a thing twice", `{"intent":"{\"operation_type\":\"read\",\"operation_type\":\"write\"}"}`,
			policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: `{"operation_type":"read","operation_type":"write"}`}},
		{"an intent that is a list", `{"intent":[]}`, policy.DeclaredIntent{Present: true, Malformed: policy.IntentNotObject}},
		{"escapes", `{"intent":{"operation_type":"re\u0061d"}}`, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := wirejson.Check([]byte(c.parameters), wirejson.Limits{}); err != nil {
				t.Fatal(err)
			}
			var got policy.DeclaredIntent
			err := wirejson.EachMember([]byte(c.parameters), func(name, value []byte) error {
				own := string(name) == "name" || string(name) == "args"
				if got.AddParameter(string(name), value) == own {
					t.Errorf("%s is handled incorrectly", name)
				}
				return nil
			})
			if d := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(policy.DeclaredIntent{})); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// TestDeclarationIsKeptAsReceived checks that the declaration is kept unchanged, whatever its interpretation.
func TestDeclarationIsKeptAsReceived(t *testing.T) {
	var d policy.DeclaredIntent
	if letter := d.RawParameters(); letter != nil {
		t.Errorf("a missing declaration returned: %s", letter)
	}
	d.AddParameter("intent_reason", []byte(`"why"`))
	d.AddParameter("name", []byte(`"a:b"`))
	d.AddParameter("intent", []byte(`{"operation_type": 9007199254740993, "x":[]}`))
	if got := string(d.RawParameters()); got != `{"intent":{"operation_type": 9007199254740993, "x":[]},"intent_reason":"why"}` {
		t.Errorf("%s", got)
	}
}

// TestOperationMustBeAString checks that an operation_type of another type is refused with the code and the message
// for an invalid operation type.
func TestOperationMustBeAString(t *testing.T) {
	var d policy.DeclaredIntent
	d.AddParameter("intent", []byte(`{"operation_type":42}`))
	r, f := sound(policy.CallToolRead, d)
	p := policy.Decide(r, f, strict).Problem
	if p == nil || p.Code != problem.InvalidOperationType || p.Message != "Invalid intent.operation_type '42': must be read, write, or destructive" {
		t.Errorf("got %+v", p)
	}
}
