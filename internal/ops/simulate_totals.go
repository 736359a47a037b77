package ops

import (
	"cmp"
	"slices"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Limits of a result.
const (
	maxGroups        = 200
	maxCountedGroups = 10_000 // number of distinct groups that are counted
	maxExamples      = 3
)

// trialTotals counts verdicts.
type trialTotals struct {
	Trial
	groups map[trialGroupKey]*TrialGroup
}

type trialGroupKey struct {
	tool, variant, called, check, code, status, why string
	would                                           Outcome
}

// addCall counts a call, or all calls that a record represents.
func (t *trialTotals) addCall(r *activity.Record, v trialVerdict) {
	times := max(1, r.Repeated)
	t.Calls += times
	d := r.Metadata.Decision
	if d == nil || d.ConfigRevision != t.InForce {
		t.Others += times
	}
	was := Allowed
	switch {
	case d != nil && (d.Check == policy.CheckAsk.String() || d.Approval != ""):
		was = Asked
	case d != nil && d.Outcome == activity.Refused || d == nil && r.Type == activity.PolicyDecision:
		was = Refused
	}
	switch v.would {
	case was:
		t.Same += times
		return
	case Refused:
		t.Refused += times
	case Allowed:
		t.Allowed += times
	case Asked:
		t.Asked += times
	case Unknown:
		t.Unknown += times
	}
	t.addToGroup(r, was, v, times)
}

func (t *trialTotals) addToGroup(r *activity.Record, was Outcome, v trialVerdict, times int64) {
	d, variant := r.Metadata.Decision, r.Metadata.ToolVariant
	g := TrialGroup{Tool: r.ServerName + ":" + r.ToolName, Variant: variant, Was: was, Would: v.would, Why: v.why, Last: r.Timestamp}
	if d != nil {
		g.Called = string(d.Called)
	}
	switch {
	case v.would == Refused:
		g.Check, g.Code, g.Status, g.Why = v.check.String(), string(v.problem.Code), v.status.String(), v.problem.Message
	case v.would == Asked:
		g.Check, g.Code, g.Why = policy.CheckAsk.String(), string(problem.ApprovalPending), v.why
	case v.would == Allowed:
		g.Check, g.Code, g.Why = d.Check, r.Metadata.ErrorCode, r.ErrorMessage
		if was == Asked {
			g.Check, g.Why = policy.CheckAsk.String(), "The user was asked first."
		}
		if d.Check == policy.CheckCallable.String() {
			g.Status = d.Status
		}
	}
	key := trialGroupKey{g.Tool, variant, g.Called, g.Check, g.Code, g.Status, v.why, v.would}
	found := t.groups[key]
	if found == nil {
		if len(t.groups) >= maxCountedGroups {
			t.LeftOut += times
			return
		}
		if t.groups == nil {
			t.groups = map[trialGroupKey]*TrialGroup{}
		}
		found = &g
		t.groups[key] = found
	}
	found.Calls += times
	if len(found.Examples) < maxExamples {
		found.Examples = append(found.Examples, r.ID)
	}
}

// toTrial returns the counts and the largest groups.
func (t *trialTotals) toTrial() Trial {
	out := t.Trial
	out.Groups = []TrialGroup{}
	for _, g := range t.groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b TrialGroup) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Would, b.Would),
			cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Called, b.Called), cmp.Compare(a.Status, b.Status))
	})
	for len(out.Groups) > maxGroups {
		last := out.Groups[len(out.Groups)-1]
		out.LeftOut += last.Calls
		out.Groups = out.Groups[:len(out.Groups)-1]
	}
	return out
}
