package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// What is passed on as it is must not carry a call of a tool past the door. In
// package upstream a client's message reaches a connection in the functions
// named here alone; those that are no call refuse tools/call, which the tests of
// upstream show.
var passedBy = map[string][]string{
	"passCall":       {"Call"},                                                                      // the door's
	"pass":           {"Relay", "converseOn", "passCall", "startNewer", "passHeld", "subscribeAll"}, // Relay refuses tools/call; the last three run what relayNewer was given
	"relayNewer":     {"answerNewer", "passCall"},
	"answerNewer":    {"Relay"}, // after it has refused tools/call
	"startNewer":     {"relayNewer"},
	"passHeld":       {"startNewer"},
	"passShared":     {"send", "passHeld", "answer", "setLevel", "subscribe"}, // send is Call's; the last three are given what relay was
	"converseShared": {"Converse"},
	"converseOn":     {"Converse", "converseShared", "checkout"},                                // with initialize, and nothing else
	"relay":          {"pass", "watchOnce", "send"},                                             // a subscription of our own; and what an olderLink's relay was given
	"notify":         {"initialize", "checkout", "Notify", "notify", "wants", "deliver", "add"}, // Notify refuses tools/call, also for the next; the last three mean a field
	"respond":        {"Respond", "event", "resume"},                                            // make answers, which call nothing
}

func TestNothingIsPassedByTheDoor(t *testing.T) {
	found := map[string]bool{}
	eachPackage(t, func(p *sourcePackage) {
		for _, f := range p.files {
			if f.test {
				continue
			}
			for caller, callees := range callsIn(f.syntax) {
				for _, callee := range callees {
					allowed, watched := passedBy[callee]
					if p.name() != "upstream" || !watched {
						continue
					}
					found[callee] = true
					if !slices.Contains(allowed, caller) {
						t.Errorf("%s: %s calls %s: only %s may, since they refuse a call of a tool or are the door's",
							f.name, caller, callee, strings.Join(allowed, ", "))
					}
				}
			}
			if p.name() != doorPackage && p.name() != "upstream" && makesPassed(f.syntax) {
				t.Errorf("%s makes an upstream.Passed: only the gateway may, after it has decided", f.name)
			}
		}
	})
	for callee := range passedBy {
		if !found[callee] {
			t.Errorf("package upstream has no call of %s any more: tell this test how messages are passed on", callee)
		}
	}
}

// callsIn gives the names of the methods that each function of a file calls or
// takes.
func callsIn(f *ast.File) map[string][]string {
	calls := map[string][]string{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				calls[fn.Name.Name] = append(calls[fn.Name.Name], s.Sel.Name)
			}
			return true
		})
	}
	return calls
}

// makesPassed says whether a file makes an upstream.Passed.
func makesPassed(f *ast.File) bool {
	made := false
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, _ := s.X.(*ast.Ident)
			made = made || x != nil && x.Name == "upstream" && s.Sel.Name == "Passed"
		}
		return true
	})
	return made
}
