package policy_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The dimensions of the decision. Their cross product covers every decision.
var (
	variants = []policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive}

	declarations = []struct {
		name string
		d    policy.DeclaredIntent
	}{
		{"(no intent)", policy.DeclaredIntent{}},
		{"{}", policy.DeclaredIntent{Present: true}},
		{"read", operation("read")},
		{"write", operation("write")},
		{"destructive", operation("destructive")},
		{`""`, operation("")},
		{"unknown", operation("unknown")},
		{"Read", operation("Read")},
		{"(malformed)", policy.DeclaredIntent{Present: true, Malformed: policy.IntentNotObject}},
		{"read, secret", policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "read", HasSensitivity: true, DataSensitivity: "secret"}},
		{"write, long", policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "write", HasReason: true, Reason: strings.Repeat("é", 1001)}},
	}

	tris       = []tool.TriBool{tool.Unset, tool.False, tool.True}
	bools      = []bool{false, true}
	operations = []policy.Operation{policy.NoOperation, policy.Read, policy.Write, policy.Destructive}
	modes      = []policy.InferMode{policy.InferOff, policy.InferAdvise, policy.InferEnforce, ""}
	existence  = []policy.ToolExistence{policy.NoServer, policy.NoTool, policy.Exists, policy.Unlisted}
	statuses   = append(policy.Statuses(), policy.Callable)
)

func operation(s string) policy.DeclaredIntent {
	return policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: s}
}

func hints(readOnly, destructive tool.TriBool) tool.Hints {
	return tool.Hints{ReadOnly: readOnly, Destructive: destructive}
}

// sound returns a valid request and facts. Each test changes the part that it checks.
func sound(v policy.CallToolVariant, d policy.DeclaredIntent) (policy.CallRequest, policy.Facts) {
	id := tool.ID{Server: "github", Tool: "delete_repo"}
	return policy.CallRequest{CallTool: v, Name: id.String(), ID: id, Declared: d},
		policy.Facts{InScope: true, Lanes: auth.AllLanes, Existence: policy.Exists, Status: policy.Callable}
}

func outcome(d policy.Decision) string {
	switch {
	case d.Verdict == policy.Allow && d.Problem == nil && len(d.Warnings) == 0:
		return "allow"
	case d.Verdict == policy.AllowWithWarning && d.Problem == nil && len(d.Warnings) == 1:
		return "warn"
	case d.Verdict == policy.Reject && d.Problem != nil && len(d.Warnings) == 0:
		return string(d.Problem.Code)
	}
	return fmt.Sprintf("INCONSISTENT %+v", d)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to create it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and review the difference\n%s", path, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// TestMatrix pins call tool × declaration × hints × strict × require: the table of the contract, one page per call
// tool and setting.
func TestMatrix(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("The decision for a callable tool, by declared operation type (rows) and effective hints (columns).\n" +
		"R = readOnlyHint, D = destructiveHint; + true, - false, . not said.\n")
	for _, strict := range bools {
		for _, require := range bools {
			for _, v := range variants {
				fmt.Fprintf(&out, "\n%s  strict_server_validation=%v require_intent=%v\n", v, strict, require)
				matrixPage(&out, v, policy.Rules{StrictServerValidation: strict, RequireIntent: require})
			}
		}
	}
	golden(t, "matrix.golden", out.Bytes())
}

func matrixPage(out *bytes.Buffer, v policy.CallToolVariant, rules policy.Rules) {
	const sign = ".-+"
	header := fmt.Sprintf("  %-14s", "")
	for _, ro := range tris {
		for _, de := range tris {
			header += fmt.Sprintf("%-17s", fmt.Sprintf("R%c D%c", sign[ro], sign[de]))
		}
	}
	fmt.Fprintln(out, strings.TrimRight(header, " "))
	for _, decl := range declarations {
		row := fmt.Sprintf("  %-14s", decl.name)
		first, same := "", true
		for _, ro := range tris {
			for _, de := range tris {
				r, f := sound(v, decl.d)
				f.Hints = hints(ro, de)
				o := outcome(policy.Decide(r, f, rules))
				if first == "" {
					first = o
				}
				same = same && o == first
				row += fmt.Sprintf("%-17s", o)
			}
		}
		if same { // one word for the whole row reads better
			row = fmt.Sprintf("  %-14s%s (whatever the hints)", decl.name, first)
		}
		fmt.Fprintln(out, strings.TrimRight(row, " "))
	}
}

// TestInferredMatrix pins call tool × inferred operation × mode × strict for a tool without hints.
func TestInferredMatrix(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("The decision for a callable tool without hints, by infer_hints (rows) and what is inferred (columns).\n")
	for _, strict := range bools {
		for _, v := range variants {
			fmt.Fprintf(&out, "\n%s  strict_server_validation=%v\n  %-12s%-17s%-17s%-17s%s\n", v, strict, "", "nothing", "read", "write", "destructive")
			for _, mode := range modes {
				row := fmt.Sprintf("  %-12s", cmp.Or(string(mode), "(not said)"))
				for _, inferred := range operations {
					r, f := sound(v, policy.DeclaredIntent{})
					f.Inferred = inferred
					row += fmt.Sprintf("%-17s", outcome(policy.Decide(r, f, policy.Rules{StrictServerValidation: strict, InferHints: mode})))
				}
				fmt.Fprintln(&out, strings.TrimRight(row, " "))
			}
		}
	}
	golden(t, "inferred.golden", out.Bytes())
}

// TestInferringNeverLoosens checks that, for any hints and inferred hints, advise decides like off or warns, and
// enforce is never more permissive than advise. If a tool has hints, only they decide.
func TestInferringNeverLoosens(t *testing.T) {
	strictness := func(d policy.Decision) int {
		return map[policy.Verdict]int{policy.Allow: 0, policy.AllowWithWarning: 1, policy.Reject: 2}[d.Verdict]
	}
	eachFact(policy.CallRequest{}, policy.Facts{InScope: true, Lanes: auth.AllLanes}, func(_ policy.CallRequest, f policy.Facts, rules policy.Rules) {
		for _, v := range variants {
			r, _ := sound(v, policy.DeclaredIntent{Present: true})
			rules.RequireIntent = false
			before := -1
			for _, rules.InferHints = range modes {
				got := strictness(policy.Decide(r, f, rules))
				if got < before {
					t.Fatalf("%s is more permissive than the previous mode: %+v, %+v", rules.InferHints, r, f)
				}
				before = got
			}
		}
		for _, inferred := range operations {
			for _, mode := range modes {
				h := policy.EffectiveHints(f.Hints, inferred, mode)
				if policy.HintsUnset(f.Hints) && (mode == policy.InferEnforce || mode == "") {
					if inferred != policy.NoOperation && policy.CallToolForHints(h).Operation() != inferred {
						t.Fatalf("inferred %v results in the hints %+v", inferred, h)
					}
				} else if h != f.Hints {
					t.Fatalf("%+v becomes %+v in mode %q, inferred %v", f.Hints, h, mode, inferred)
				}
				if again := policy.EffectiveHints(h, inferred, mode); again != h {
					t.Fatalf("%+v becomes %+v in a second evaluation", h, again)
				}
			}
		}
	})
}

// TestOrder pins which problem is reported for every subset of the faults.
func TestOrder(t *testing.T) {
	faults := []struct {
		name  string
		apply func(*policy.CallRequest, *policy.Facts)
	}{
		{"name", func(r *policy.CallRequest, _ *policy.Facts) { r.NameErr = errors.New("there is no colon") }},
		{"intent", func(r *policy.CallRequest, _ *policy.Facts) { r.Declared = operation("write") }},
		{"select", func(r *policy.CallRequest, _ *policy.Facts) {
			r.SelectErr = problem.New(problem.SelectInvalid, "x", "")
		}},
		{"args", func(r *policy.CallRequest, _ *policy.Facts) { r.ArgsErr = problem.New(problem.InvalidArgs, "x", "") }},
		{"scope", func(_ *policy.CallRequest, f *policy.Facts) { f.InScope = false }},
		{"exists", func(_ *policy.CallRequest, f *policy.Facts) { f.Existence = policy.NoTool }},
		{"status", func(_ *policy.CallRequest, f *policy.Facts) { f.Status = policy.DisabledByUser }},
		{"hints", func(_ *policy.CallRequest, f *policy.Facts) { f.Hints.Destructive = tool.True }},
	}
	var out bytes.Buffer
	out.WriteString("What a call with several faults is refused for.\n\n")
	for set := range 1 << len(faults) {
		r, f := sound(policy.CallToolRead, policy.DeclaredIntent{})
		var names []string
		for i, fault := range faults {
			if set>>i&1 == 1 {
				fault.apply(&r, &f)
				names = append(names, fault.name)
			}
		}
		d := policy.Decide(r, f, policy.Rules{StrictServerValidation: true})
		first := policy.NoCheck // the checks are named in the order of the faults
		if set != 0 {
			first = policy.CheckName + policy.Check(bits.TrailingZeros(uint(set)))
		}
		if d.Check != first {
			t.Errorf("%v: refused by %s, want %s", names, d.Check, first)
		}
		fmt.Fprintf(&out, "%-20s %s\n", outcome(d), strings.Join(names, " "))
	}
	golden(t, "order.golden", out.Bytes())
}

// TestCrossProduct compares the decision for every combination with a second implementation of the contract, a list
// of rules.
func TestCrossProduct(t *testing.T) {
	count := map[string]int{}
	each(func(r policy.CallRequest, f policy.Facts, rules policy.Rules) {
		d := policy.Decide(r, f, rules)
		got, want := outcome(d), contract(r, f, rules)
		count[got]++
		if got != want {
			t.Fatalf("got %s, want %s\nrequest %+v\nfacts %+v\nrules %+v", got, want, r, f, rules)
		}
	})
	if len(count) != 17 {
		t.Errorf("%d different outcomes, want 17: %v", len(count), count)
	}
}

// each calls fn with the full cross product.
func each(fn func(policy.CallRequest, policy.Facts, policy.Rules)) {
	nameErr, argsErr := errors.New("there is no colon"), problem.New(problem.InvalidArgs, "x", "")
	for _, v := range append([]policy.CallToolVariant{policy.CallToolNone}, variants...) {
		for _, decl := range declarations {
			for faults := range 8 {
				r, f := sound(v, decl.d)
				if faults&1 != 0 {
					r.NameErr = nameErr
				}
				if faults&2 != 0 {
					r.ArgsErr = argsErr
				}
				f.InScope = faults&4 == 0
				eachFact(r, f, fn)
			}
		}
	}
}

func eachFact(r policy.CallRequest, f policy.Facts, fn func(policy.CallRequest, policy.Facts, policy.Rules)) {
	for _, f.Existence = range existence {
		for _, f.Status = range statuses {
			for _, f.Hints.ReadOnly = range tris {
				for _, f.Hints.Destructive = range tris {
					for _, strict := range bools {
						for _, require := range bools {
							eachGuess(r, f, policy.Rules{StrictServerValidation: strict, RequireIntent: require}, fn)
						}
					}
				}
			}
		}
	}
}

// eachGuess varies the inferred operation where it may matter.
func eachGuess(r policy.CallRequest, f policy.Facts, rules policy.Rules, fn func(policy.CallRequest, policy.Facts, policy.Rules)) {
	if f.Existence != policy.Exists || f.Status != policy.Callable {
		fn(r, f, rules)
		return
	}
	for _, f.Inferred = range operations {
		for _, f.InferredUnsure = range bools {
			for _, rules.InferHints = range modes {
				fn(r, f, rules)
			}
		}
	}
}

// contract is section 4 of the contract, as a list of rules. The first rule that applies determines the outcome.
func contract(r policy.CallRequest, f policy.Facts, rules policy.Rules) string {
	lane := map[policy.CallToolVariant]string{policy.CallToolRead: "read", policy.CallToolWrite: "write", policy.CallToolDestructive: "destructive"}[r.CallTool]
	op := r.Declared.OperationType
	valid := op == "read" || op == "write" || op == "destructive"
	silent := f.Hints.ReadOnly == tool.Unset && f.Hints.Destructive == tool.Unset
	enforced := silent && rules.InferHints != policy.InferOff && rules.InferHints != policy.InferAdvise
	destructive := f.Hints.Destructive == tool.True || enforced && f.Inferred == policy.Destructive
	readOnly := f.Hints.ReadOnly == tool.True || enforced && f.Inferred == policy.Read
	changes := f.Hints.ReadOnly == tool.False || enforced && f.Inferred == policy.Write
	lanePermits := lane == "destructive" || !destructive && (lane == "write" || !changes)
	warns := rules.InferHints != policy.InferOff && !f.InferredUnsure
	for _, rule := range []struct {
		applies bool
		outcome string
	}{
		{lane == "", "INVALID_PARAMETER"},
		{r.NameErr != nil, "INVALID_NAME"},
		{r.Declared.Malformed != "", "INVALID_ARGS"},
		{r.Declared.HasOperation && !valid, "INVALID_OPERATION_TYPE"},
		{r.Declared.HasOperation && op != lane, "INTENT_MISMATCH"},
		{rules.RequireIntent && !r.Declared.Present, "MISSING_INTENT"},
		{rules.RequireIntent && !r.Declared.HasOperation, "MISSING_OPERATION_TYPE"},
		{r.Declared.DataSensitivity == "secret", "INVALID_SENSITIVITY"},
		{len(r.Declared.Reason) > 2000, "REASON_TOO_LONG"},
		{r.ArgsErr != nil, "INVALID_ARGS"},
		{!f.InScope, "OUT_OF_SCOPE"},
		{f.Existence == policy.NoServer, "SERVER_NOT_FOUND"},
		{f.Existence == policy.NoTool, "TOOL_NOT_FOUND"},
		{f.Existence == policy.Unlisted, "SERVER_UNAVAILABLE"},
		{f.Status != policy.Callable, "TOOL_LOCKED"},
		{!lanePermits && rules.StrictServerValidation, "SERVER_MISMATCH"},
		{!lanePermits, "warn"},
		{lane == "write" && readOnly, "warn"},
		{warns && f.Inferred == policy.Destructive && lane != "destructive", "warn"},
		{warns && f.Inferred == policy.Write && lane == "read", "warn"},
	} {
		if rule.applies {
			return rule.outcome
		}
	}
	return "allow"
}
