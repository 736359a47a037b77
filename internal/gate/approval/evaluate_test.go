package approval

import (
	"fmt"
	"testing"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// TestJudge evaluates every combination of inputs, and compares the result with an independent implementation of the
// rules.
func TestJudge(t *testing.T) {
	current, other := tool.Fingerprint{1}, tool.Fingerprint{2}
	type pins struct {
		name string
		pin  *Pin
	}
	strict := tool.Hints{Destructive: tool.True}
	loosened := map[string]bool{"none": false, "this": false, "other": false, "stricter": true}
	cases := 0
	for _, trust := range []Trust{Manual, Scan, Auto, "", "AUTO"} {
		for _, verdict := range []scan.Verdict{scan.Incomplete, scan.Clean, scan.Review, scan.Block} {
			for _, p := range []pins{{"none", nil}, {"this", &Pin{Fingerprint: current}}, {"other", &Pin{Fingerprint: other}}, {"stricter", &Pin{Fingerprint: other, Hints: strict}}} {
				for _, block := range []*Block{nil, {Fingerprint: current}, {Fingerprint: other}} {
					for bits := range 8 {
						r := EvaluationRules{Trust: trust, Quarantined: bits&1 != 0, UnknownIsNew: bits&2 != 0}
						e := DefinitionDecisions{Pin: p.pin, Block: block}
						if bits&4 != 0 {
							e.Off = &AuthorAndTime{} // which has no influence
						}
						asked := false
						got := Evaluate(r, e, CandidateDefinition{Tool: "t", Fingerprint: current, Report: func() scan.Report {
							asked = true
							return scan.Report{Verdict: verdict}
						}})
						name := fmt.Sprintf("%+v, verdict %s, pin %s, block %v", r, verdict, p.name, block)
						approved := p.name == "this"
						first := p.name == "none" && r.UnknownIsNew && (trust == Auto || trust == Scan && verdict == scan.Clean)
						change := p.name == "other" && trust == Auto
						accepted := !approved && block == nil && !r.Quarantined && (first || change)
						why := WaitReason("")
						switch {
						case approved || accepted:
						case block != nil && block.Fingerprint == current:
							why = Blocked
						case p.name == "none":
							why = New
						default:
							why = Changed
						}
						if got.Tool != "t" || got.Accepted != accepted || got.Why != why || (len(got.Loosened) > 0) != loosened[p.name] {
							t.Errorf("%s: got %+v, want accepted %v, why %q", name, got, accepted, why)
						}
						if asked && (approved || trust != Scan || r.Quarantined) {
							t.Errorf("%s: the scanner was called unnecessarily", name)
						}
						cases++
					}
				}
			}
		}
	}
	if cases != 5*4*4*3*8 {
		t.Errorf("%d cases", cases)
	}
}

func TestADefinitionWithoutAReportIsNotClean(t *testing.T) {
	if Evaluate(EvaluationRules{Trust: Scan, UnknownIsNew: true}, DefinitionDecisions{}, CandidateDefinition{}).Accepted {
		t.Error("accepted without a scan")
	}
}

// TestLoosened checks all pairs of states of all hints.
func TestLoosened(t *testing.T) {
	states := []tool.TriBool{tool.Unset, tool.False, tool.True}
	for _, was := range states {
		for _, is := range states {
			for hint, c := range map[string]struct {
				was, is tool.Hints
				want    bool
			}{
				"destructiveHint": {tool.Hints{Destructive: was}, tool.Hints{Destructive: is}, was == tool.True && is != tool.True || was == tool.Unset && is == tool.False},
				"readOnlyHint":    {tool.Hints{ReadOnly: was}, tool.Hints{ReadOnly: is}, was != tool.True && is == tool.True || was == tool.False && is == tool.Unset},
				"idempotentHint":  {tool.Hints{Idempotent: was}, tool.Hints{Idempotent: is}, was != tool.True && is == tool.True},
				"openWorldHint":   {tool.Hints{OpenWorld: was}, tool.Hints{OpenWorld: is}, was != tool.False && is == tool.False},
			} {
				got := loosenedHints(c.was, c.is)
				if (len(got) == 1 && got[0] == hint) != c.want || len(got) > 1 {
					t.Errorf("%s from %v to %v: %v, want %v", hint, was, is, got, c.want)
				}
			}
		}
	}
}
