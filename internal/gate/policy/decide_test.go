package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"

	"pgregory.net/rapid"
)

var strict = policy.Rules{StrictServerValidation: true}

// TestContractMessages compares the messages with the contract, to the letter.
func TestContractMessages(t *testing.T) {
	destructive := hints(tool.Unset, tool.True)
	for _, c := range []struct {
		name     string
		variant  policy.CallToolVariant
		declared policy.DeclaredIntent
		hints    tool.Hints
		rules    policy.Rules
		code     problem.Code
		message  string
	}{
		{"intent mismatch", policy.CallToolRead, operation("write"), tool.Hints{}, strict,
			problem.IntentMismatch, "Intent mismatch: tool is call_tool_read but intent declares write"},
		{"missing intent", policy.CallToolRead, policy.DeclaredIntent{}, tool.Hints{}, policy.Rules{RequireIntent: true},
			problem.MissingIntent, "intent parameter is required for call_tool_read"},
		{"missing operation type", policy.CallToolRead, policy.DeclaredIntent{Present: true}, tool.Hints{}, policy.Rules{RequireIntent: true},
			problem.MissingOperationType, "intent.operation_type is required"},
		{"invalid operation type", policy.CallToolRead, operation("unknown"), tool.Hints{}, strict,
			problem.InvalidOperationType, "Invalid intent.operation_type 'unknown': must be read, write, or destructive"},
		{"server mismatch", policy.CallToolRead, operation("read"), destructive, strict,
			problem.ServerMismatch, "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of call_tool_read"},
		{"server mismatch in the write lane", policy.CallToolWrite, policy.DeclaredIntent{}, hints(tool.True, tool.True), strict,
			problem.ServerMismatch, "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of call_tool_write"},
		{"not read-only in the read lane", policy.CallToolRead, policy.DeclaredIntent{}, hints(tool.False, tool.Unset), strict,
			problem.ServerMismatch, "Tool 'github:delete_repo' is marked as not read-only by server, use call_tool_write instead of call_tool_read"},
		{"invalid sensitivity", policy.CallToolRead, policy.DeclaredIntent{HasSensitivity: true, DataSensitivity: "secret"}, tool.Hints{}, strict,
			problem.InvalidSensitivity, "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown"},
		{"reason too long", policy.CallToolRead, policy.DeclaredIntent{HasReason: true, Reason: strings.Repeat("界", 1001)}, tool.Hints{}, strict,
			problem.ReasonTooLong, "intent.reason exceeds maximum length of 1000 characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := sound(c.variant, c.declared)
			f.Hints = c.hints
			d := policy.Decide(r, f, c.rules)
			if d.Problem == nil || d.Problem.Code != c.code || d.Problem.Message != c.message {
				t.Errorf("got %+v, want %s %q", d.Problem, c.code, c.message)
			}
		})
	}
}

// TestProblems pins every problem in full: code, message, hint and details.
func TestProblems(t *testing.T) {
	type change func(*policy.CallRequest, *policy.Facts, *policy.Rules)
	nearest := []string{"github:delete_release", "github:delete_file", "github:delete_branch", "github:delete_tag"}
	cases := []struct {
		name   string
		change change
	}{
		{"no variant", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) { r.CallTool = policy.CallToolNone }},
		{"name", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Name, r.ID, r.NameErr = "delete_repo", tool.ID{}, errors.New("there is no colon")
		}},
		{"name left out", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) { r.Name, r.ID = "", tool.ID{} }},
		{"name full of control characters", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Name, r.ID, r.NameErr = "a\x1b[31m\nb"+strings.Repeat("c", 300), tool.ID{}, errors.New("there is no colon")
		}},
		{"intent malformed", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Declared.Malformed = policy.IntentNotObject
		}},
		{"intent field not a string", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Declared.Malformed = policy.FieldNotStringText("intent.reason")
		}},
		{"intent said twice", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Declared.Malformed = policy.FieldsDifferText("intent.reason", "intent_reason")
		}},
		{"operation type empty", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) { r.Declared = operation("") }},
		{"operation type not a string", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) { r.Declared = operation("[1]") }},
		{"intent mismatch", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) { r.Declared = operation("destructive") }},
		{"missing intent", func(_ *policy.CallRequest, _ *policy.Facts, rules *policy.Rules) { rules.RequireIntent = true }},
		{"missing operation type", func(r *policy.CallRequest, _ *policy.Facts, rules *policy.Rules) {
			r.Declared.Present, rules.RequireIntent = true, true
		}},
		{"sensitivity", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Declared.HasSensitivity, r.Declared.DataSensitivity = true, "secret"
		}},
		{"reason", func(r *policy.CallRequest, _ *policy.Facts, _ *policy.Rules) {
			r.Declared.HasReason, r.Declared.Reason = true, strings.Repeat("a", 1001)
		}},
		{"scope", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) { f.InScope = false }},
		{"server", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Existence, f.Suggestions = policy.NoServer, []string{"gitlab"}
		}},
		{"tool", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Existence, f.Suggestions = policy.NoTool, nearest
		}},
		{"tool, of a caller with the list", func(r *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			r.OwnNames, f.Existence, f.Suggestions = true, policy.NoTool, nearest
		}},
		{"server, of a caller with the list", func(r *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			r.OwnNames, f.Existence = true, policy.NoServer
		}},
		{"scope, of a caller with the list", func(r *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			r.OwnNames, f.InScope = true, false
		}},
		{"status, of a caller with the list", func(r *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			r.OwnNames, f.Status = true, policy.DisabledByUser
		}},
		{"status, blocked by a user", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Status, f.Blocked = policy.PendingApproval, true
		}},
		{"status, blocked by a user and switched off", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Status, f.Blocked = policy.DisabledByUser, true
		}},
		{"tool, nothing near", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) { f.Existence = policy.NoTool }},
		{"server never listed", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Existence, f.Unlisted = policy.Unlisted, "it is connecting"
		}},
		{"server never logged in to", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Existence, f.Unlisted, f.LoginNeeded = policy.Unlisted, "401", true
		}},
		{"hints", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) { f.Hints.Destructive = tool.True }},
		{"hints of the server", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Hints.Destructive, f.ServerHints.Destructive = tool.True, tool.True
		}},
		{"not read-only", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) { f.Hints.ReadOnly = tool.False }},
		{"not read-only, of the server", func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			f.Hints.ReadOnly, f.ServerHints.ReadOnly = tool.False, tool.False
		}},
		{"not read-only, not strict", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Hints.ReadOnly, rules.StrictServerValidation = tool.False, false
		}},
		{"inferred write, enforced", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferenceReason, rules.InferHints = policy.Write, `its name says "create"`, policy.InferEnforce
		}},
		{"inferred write for want of a sign, enforced", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferredUnsure, f.InferenceReason, rules.InferHints = policy.Write, true, `nothing says that it only reads`, policy.InferEnforce
		}},
		{"hints, not strict", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Hints.Destructive, rules.StrictServerValidation = tool.True, false
		}},
		{"inferred, enforced", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferenceReason, rules.InferHints = policy.Destructive, `its name says "delete"`, policy.InferEnforce
		}},
		{"inferred, enforced, not strict", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferenceReason, rules.InferHints, rules.StrictServerValidation = policy.Destructive, `its name says "delete"`, policy.InferEnforce, false
		}},
		{"inferred, enforced, overly cautious", func(r *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			r.CallTool, f.Inferred, f.InferenceReason, rules.InferHints = policy.CallToolWrite, policy.Read, `its name says "get", and nothing speaks against it`, policy.InferEnforce
		}},
		{"inferred, advised", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferenceReason, rules.InferHints = policy.Destructive, `its name says "delete"`, policy.InferAdvise
		}},
		{"inferred write, advised", func(_ *policy.CallRequest, f *policy.Facts, rules *policy.Rules) {
			f.Inferred, f.InferenceReason, rules.InferHints = policy.Write, `its name says "create"`, policy.InferAdvise
		}},
		{"overly cautious", func(r *policy.CallRequest, f *policy.Facts, _ *policy.Rules) {
			r.CallTool, f.Hints.ReadOnly = policy.CallToolWrite, tool.True
		}},
	}
	for _, s := range policy.Statuses() {
		cases = append(cases, struct {
			name   string
			change change
		}{"status " + s.String(), func(_ *policy.CallRequest, f *policy.Facts, _ *policy.Rules) { f.Status = s }})
	}
	var out bytes.Buffer
	for _, c := range cases {
		r, f := sound(policy.CallToolRead, policy.DeclaredIntent{})
		rules := strict
		c.change(&r, &f, &rules)
		d := policy.Decide(r, f, rules)
		fmt.Fprintf(&out, "== %s\n", c.name)
		if d.Problem == nil {
			fmt.Fprintf(&out, "warning: %s\n\n", strings.Join(d.Warnings, "\nwarning: "))
			continue
		}
		details, err := json.Marshal(d.Problem.Details)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\nmessage: %s\nhint:    %s\ndetails: %s\n\n", d.Problem.Code, d.Problem.Message, d.Problem.Hint, details)
	}
	golden(t, "problems.golden", out.Bytes())
}

func TestInvariants(t *testing.T) {
	each(func(r policy.CallRequest, f policy.Facts, rules policy.Rules) {
		d := policy.Decide(r, f, rules)
		fail := func(rule string) {
			t.Fatalf("%s\nrequest %+v\nfacts %+v\nrules %+v\ndecision %+v", rule, r, f, rules, d)
		}
		rejected := d.Verdict == policy.Reject
		if rejected != (d.Problem != nil) {
			fail("a problem is set if and only if the call is rejected")
		}
		if rejected != (d.Check.String() != "") {
			fail("the check that refused is named if and only if the call is rejected")
		}
		if (d.Verdict == policy.AllowWithWarning) != (len(d.Warnings) > 0) {
			fail("warnings are there if and only if the verdict says so")
		}
		if !rejected && d.Intent.Operation != r.CallTool.Operation() {
			fail("an allowed call has the operation of its variant")
		}
		if !rejected && rules.StrictServerValidation && f.Hints.Destructive == tool.True && r.CallTool != policy.CallToolDestructive {
			fail("with strict validation only the destructive lane reaches a destructive tool")
		}
		if !rejected && (f.Status != policy.Callable || f.Existence != policy.Exists || !f.InScope) {
			fail("what is locked, unknown or out of scope is never called")
		}
		if !rejected && rules.RequireIntent && !r.Declared.HasOperation {
			fail("a required intent is never inferred")
		}
		if rejected && (d.Problem.Code.HTTPStatus() == 500 || d.Problem.Message == "" || strings.ContainsAny(d.Problem.Message, "\n\r")) {
			fail("a problem has a known code and a message of one line")
		}
		if r.CallTool != policy.CallToolNone && d.Intent.Operation == policy.NoOperation {
			fail("every decision has an operation for the record")
		}
	})
}

// TestZeroValuesReject checks that a field that is not set permits no call.
func TestZeroValuesReject(t *testing.T) {
	full, facts := sound(policy.CallToolDestructive, operation("destructive"))
	facts.Hints = hints(tool.True, tool.False)
	rules := strict
	if d := policy.Decide(full, facts, rules); d.Verdict != policy.Allow {
		t.Fatalf("the valid call is refused: %+v", d)
	}
	for name, change := range map[string]func(*policy.CallRequest, *policy.Facts){
		"request":   func(r *policy.CallRequest, _ *policy.Facts) { *r = policy.CallRequest{} },
		"facts":     func(_ *policy.CallRequest, f *policy.Facts) { *f = policy.Facts{} },
		"variant":   func(r *policy.CallRequest, _ *policy.Facts) { r.CallTool = 0 },
		"id":        func(r *policy.CallRequest, _ *policy.Facts) { r.ID = tool.ID{} },
		"server":    func(r *policy.CallRequest, _ *policy.Facts) { r.ID.Server = "" },
		"tool":      func(r *policy.CallRequest, _ *policy.Facts) { r.ID.Tool = "" },
		"scope":     func(_ *policy.CallRequest, f *policy.Facts) { f.InScope = false },
		"existence": func(_ *policy.CallRequest, f *policy.Facts) { f.Existence = 0 },
		"status":    func(_ *policy.CallRequest, f *policy.Facts) { f.Status = 0 },
		// Values that are not constants of their type.
		"variant 9":   func(r *policy.CallRequest, _ *policy.Facts) { r.CallTool = 9 },
		"existence 9": func(_ *policy.CallRequest, f *policy.Facts) { f.Existence = 9 },
		"status 99":   func(_ *policy.CallRequest, f *policy.Facts) { f.Status = 99 },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := full, facts
			change(&r, &f)
			if d := policy.Decide(r, f, rules); d.Verdict != policy.Reject || d.Problem == nil {
				t.Errorf("allowed: %+v", d)
			}
		})
	}
	if (policy.Decision{}).Verdict != policy.Reject {
		t.Error("the zero Decision does not reject")
	}
}

func TestIntentOfRecord(t *testing.T) {
	for _, c := range []struct {
		name     string
		declared policy.DeclaredIntent
		want     policy.Intent
	}{
		{"nothing said", policy.DeclaredIntent{}, policy.Intent{Operation: policy.Read}},
		{"all said", policy.DeclaredIntent{HasOperation: true, OperationType: "read", HasSensitivity: true, DataSensitivity: "internal", HasReason: true, Reason: "why"},
			policy.Intent{Operation: policy.Read, Sensitivity: "internal", Reason: "why"}},
		{"empty optional members are not given", policy.DeclaredIntent{HasSensitivity: true, HasReason: true}, policy.Intent{Operation: policy.Read}},
		{"a mismatch keeps what was declared", operation("write"), policy.Intent{Operation: policy.Write}},
		{"an invalid type falls back to the variant", operation("bogus"), policy.Intent{Operation: policy.Read}},
		{"an invalid sensitivity is not kept", policy.DeclaredIntent{HasSensitivity: true, DataSensitivity: "top"}, policy.Intent{Operation: policy.Read}},
		{"a long reason is cut", policy.DeclaredIntent{HasReason: true, Reason: strings.Repeat("ü", 1500)},
			policy.Intent{Operation: policy.Read, Reason: strings.Repeat("ü", 1000)}},
		{"unflagged members are not looked at", policy.DeclaredIntent{OperationType: "write", DataSensitivity: "public", Reason: "no"}, policy.Intent{Operation: policy.Read}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := sound(policy.CallToolRead, c.declared)
			if got := policy.Decide(r, f, strict).Intent; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReasonCountsCharacters(t *testing.T) {
	for _, c := range []struct {
		char string
		n    int
		ok   bool
	}{{"a", 1000, true}, {"a", 1001, false}, {"ü", 1000, true}, {"ü", 1001, false}, {"🙂", 1000, true}, {"🙂", 1001, false}, {"\xff", 1000, true}, {"\xff", 1001, false}} {
		r, f := sound(policy.CallToolRead, policy.DeclaredIntent{HasReason: true, Reason: strings.Repeat(c.char, c.n)})
		d := policy.Decide(r, f, strict)
		if ok := d.Verdict == policy.Allow; ok != c.ok {
			t.Errorf("%d × %q: allowed is %v, want %v", c.n, c.char, ok, c.ok)
		}
	}
}

func TestCallWith(t *testing.T) {
	for _, ro := range tris {
		for _, de := range tris {
			want := policy.CallToolWrite
			if ro == tool.True {
				want = policy.CallToolRead
			}
			if de == tool.True {
				want = policy.CallToolDestructive
			}
			v := policy.CallToolForHints(hints(ro, de))
			if v != want {
				t.Errorf("CallWith(readOnly %d, destructive %d) = %s, want %s", ro, de, v, want)
			}
			// The recommended declaration causes no warning.
			r, f := sound(v, operation(v.Operation().String()))
			f.Hints = hints(ro, de)
			if d := policy.Decide(r, f, policy.Rules{StrictServerValidation: true, RequireIntent: true}); d.Verdict != policy.Allow {
				t.Errorf("the recommended variant %s gives %s", v, outcome(d))
			}
		}
	}
}

func TestSpellings(t *testing.T) {
	for i, s := range []string{"read", "write", "destructive"} {
		o, ok := policy.ParseOperation(s)
		v, vok := policy.ParseCallToolName("call_tool_" + s)
		if !ok || !vok || int(o) != i+1 || o.String() != s || v.String() != "call_tool_"+s || v.Operation() != o || policy.CallToolForOperation(o) != v {
			t.Errorf("%s: operation %v %v, variant %v %v", s, o, ok, v, vok)
		}
	}
	for _, s := range []string{"", "READ", "Read", " read", "call_tool", "call_tool_", "call_tool_Read", "delete"} {
		if o, ok := policy.ParseOperation(s); ok || o != policy.NoOperation {
			t.Errorf("%q is accepted as an operation", s)
		}
		if v, ok := policy.ParseCallToolName(s); ok || v != policy.CallToolNone {
			t.Errorf("%q is accepted as a variant", s)
		}
	}
	for _, s := range []string{"public", "internal", "private", "unknown"} {
		if !policy.IsSensitivity(s) {
			t.Errorf("%q is rejected", s)
		}
	}
	if policy.IsSensitivity("") || policy.IsSensitivity("Public") {
		t.Error("an invalid spelling is accepted")
	}
	if policy.Operation(9).String() != "" || policy.CallToolVariant(9).String() != "" || policy.CallToolVariant(9).Operation() != policy.NoOperation || policy.CallToolForOperation(9) != policy.CallToolNone {
		t.Error("a value that is not a constant has a name")
	}
}

// TestDecideProperties generates inputs that the cross product does not contain: arbitrary strings.
func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := policy.CallToolVariant(rapid.IntRange(0, 4).Draw(t, "variant"))
		r := policy.CallRequest{
			CallTool: v,
			Name:     rapid.String().Draw(t, "name"),
			ID:       tool.ID{Server: rapid.String().Draw(t, "server"), Tool: rapid.String().Draw(t, "tool")},
			Declared: policy.DeclaredIntent{
				Present: rapid.Bool().Draw(t, "present"), HasOperation: rapid.Bool().Draw(t, "hasOperation"),
				OperationType:  rapid.OneOf(rapid.SampledFrom([]string{"read", "write", "destructive"}), rapid.String()).Draw(t, "operation"),
				HasSensitivity: rapid.Bool().Draw(t, "hasSensitivity"), DataSensitivity: rapid.String().Draw(t, "sensitivity"),
				HasReason: rapid.Bool().Draw(t, "hasReason"), Reason: rapid.StringN(0, 1200, -1).Draw(t, "reason"),
			},
		}
		f := policy.Facts{
			InScope: rapid.Bool().Draw(t, "scope"), Lanes: auth.AllLanes, Existence: policy.ToolExistence(rapid.IntRange(0, 3).Draw(t, "existence")),
			Status: policy.ToolStatus(rapid.IntRange(0, 8).Draw(t, "status")),
			Hints:  hints(tool.TriBool(rapid.IntRange(-1, 3).Draw(t, "ro")), tool.TriBool(rapid.IntRange(-1, 3).Draw(t, "de"))),
		}
		rules := policy.Rules{StrictServerValidation: rapid.Bool().Draw(t, "strict"), RequireIntent: rapid.Bool().Draw(t, "require")}
		holds(t, r, f, rules)
	})
}

// holds checks properties that every decision must have.
func holds(t interface{ Fatalf(string, ...any) }, r policy.CallRequest, f policy.Facts, rules policy.Rules) {
	d := policy.Decide(r, f, rules)
	if strings.HasPrefix(outcome(d), "INCONSISTENT") {
		t.Fatalf("%s", outcome(d))
	}
	if d.Verdict != policy.Reject {
		callable := f.InScope && f.Existence == policy.Exists && f.Status == policy.Callable
		tame := f.Hints.Destructive != tool.True || r.CallTool == policy.CallToolDestructive || !rules.StrictServerValidation
		if !callable || !tame || r.NameErr != nil || r.ArgsErr != nil || r.Declared.Malformed != "" {
			t.Fatalf("allowed: %+v %+v %+v", r, f, rules)
		}
		if r.Declared.HasOperation && r.Declared.OperationType != r.CallTool.Operation().String() {
			t.Fatalf("allowed with declared %q as %s", r.Declared.OperationType, r.CallTool)
		}
		return
	}
	if d.Problem.Code.HTTPStatus() == 500 || !utf8.ValidString(d.Problem.Message) || len(d.Problem.Message) > 2000 {
		t.Fatalf("problem %s %q", d.Problem.Code, d.Problem.Message)
	}
	if _, err := json.Marshal(d.Problem); err != nil {
		t.Fatalf("the problem cannot be encoded: %v", err)
	}
	if n := utf8.RuneCountInString(d.Intent.Reason); n > policy.MaxReason {
		t.Fatalf("the record contains a reason of %d characters", n)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(1), uint16(0xffff), "github:delete_repo", "github", "delete_repo", "read", "public", "why", uint8(6), uint8(9))
	f.Add(uint8(3), uint16(0), "", "", "", "", "", "", uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, variant uint8, flags uint16, name, server, toolName, op, sensitivity, reason string, status, hint uint8) {
		flag := func(i int) bool { return flags>>i&1 == 1 }
		r := policy.CallRequest{CallTool: policy.CallToolVariant(variant), Name: name, ID: tool.ID{Server: server, Tool: toolName}, Declared: policy.DeclaredIntent{
			Present: flag(0), HasOperation: flag(1), OperationType: op, HasSensitivity: flag(2), DataSensitivity: sensitivity, HasReason: flag(3), Reason: reason}}
		if flag(4) {
			r.NameErr = errors.New("bad")
		}
		if flag(5) {
			r.ArgsErr = problem.New(problem.InvalidArgs, "bad", "")
		}
		facts := policy.Facts{InScope: flag(6), Lanes: auth.AllLanes, Existence: policy.ToolExistence(flags >> 7 & 3), Suggestions: slices.Repeat([]string{name}, int(flags>>9&7)),
			Status: policy.ToolStatus(status), Hints: hints(tool.TriBool(hint%3), tool.TriBool(hint/3%3))}
		holds(t, r, facts, policy.Rules{StrictServerValidation: flag(12), RequireIntent: flag(13)})
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name     string
		declared policy.DeclaredIntent
		hints    tool.Hints
	}{
		{"allow", policy.DeclaredIntent{}, hints(tool.True, tool.False)},
		{"allow with a full intent", policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", HasSensitivity: true,
			DataSensitivity: "internal", HasReason: true, Reason: "to answer the question of the user"}, hints(tool.True, tool.False)},
		{"allow with a long reason", policy.DeclaredIntent{HasReason: true, Reason: strings.Repeat("ü", 1000)}, tool.Hints{}},
		{"allow, inferred", policy.DeclaredIntent{}, tool.Hints{}},
		{"reject", operation("write"), tool.Hints{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, f := sound(policy.CallToolRead, c.declared)
			f.Hints = c.hints
			if c.name == "allow, inferred" {
				f.Inferred = policy.Read
			}
			b.ReportAllocs()
			for b.Loop() {
				policy.Decide(r, f, strict)
			}
		})
	}
}

func TestAllowDoesNotAllocate(t *testing.T) {
	r, f := sound(policy.CallToolRead, policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", HasReason: true, Reason: "why"})
	if n := testing.AllocsPerRun(100, func() { policy.Decide(r, f, strict) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
