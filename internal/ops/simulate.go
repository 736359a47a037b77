package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// TrialOperations implements the simulation of another configuration with recorded calls.
type TrialOperations struct {
	Each    func(ctx context.Context, f activity.Filter, fn func(*activity.Record) error) error // iterates over the activity log
	Live    func() *config.Config
	Parse   func(text string) (*config.Config, error)
	Catalog *catalog.Catalog
	Tokens  func(ctx context.Context) ([]auth.Token, error)
	Now     func() time.Time
}

// TrialRequest is a request to simulate a configuration.
type TrialRequest struct {
	Text   string `json:"text" required:"true" doc:"The text of the configuration file to evaluate. It may contain the placeholders of secrets that GET /config shows."`
	Period string `json:"period" doc:"The length of the period whose calls are evaluated, such as 90s, 30m, 24h, 30d or 2w. It ends now. Default: 30d."`
}

// Example returns an example for the OpenAPI document.
func (TrialRequest) Example() string {
	return `{"text": "{\"intent_declaration\": {\"require_intent\": true}}", "period": "30d"}`
}

// defaultPeriod is the default period whose calls are evaluated.
const defaultPeriod = 30 * 24 * time.Hour

// SimulateConfig evaluates the recorded calls under another configuration.
func (t *TrialOperations) SimulateConfig(ctx context.Context, _ auth.Caller, in TrialRequest) (Trial, error) {
	began := t.Now()
	period := defaultPeriod
	if in.Period != "" {
		var ok bool
		if period, ok = activity.ParseDuration(in.Period); !ok || period < time.Second {
			return Trial{}, problem.Newf(problem.InvalidParameter, "Invalid value '%s' for period: must be a span such as 24h, 30d or 2w", problem.ClipName(in.Period)).
				With("parameter", "period").With("value", problem.ClipName(in.Period))
		}
	}
	next, err := t.Parse(in.Text)
	if err != nil {
		return Trial{}, err
	}
	court, err := t.newEvaluator(ctx, next)
	if err != nil {
		return Trial{}, err
	}
	out := trialTotals{Trial: Trial{Since: began.Add(-period).UTC(), Revision: next.Revision(), InForce: court.live.Revision()}, groups: map[trialGroupKey]*TrialGroup{}}
	calls := activity.Filter{Types: []activity.Type{activity.ToolCall, activity.PolicyDecision}, Since: out.Since}
	err = t.Each(ctx, calls, func(r *activity.Record) error {
		if _, call := policy.ParseCallToolName(r.Metadata.ToolVariant); call { // else it was rejected early
			out.addCall(r, court.evaluateCall(r))
		}
		return nil
	})
	out.TookMS = t.Now().Sub(began).Milliseconds()
	return out.toTrial(), err
}

// newEvaluator loads the data that the evaluation needs in addition to the records.
func (t *TrialOperations) newEvaluator(ctx context.Context, next *config.Config) (*trialEvaluator, error) {
	tokens, err := t.Tokens(ctx)
	if err != nil {
		return nil, problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
	}
	c := &trialEvaluator{live: t.Live(), next: next, catalog: t.Catalog, snapshot: t.Catalog.Current(), tokens: map[string]tokenScope{}, tools: map[definitionKey]*catalog.Tool{}}
	for _, one := range tokens {
		c.tokens["agent:"+one.Name] = tokenScope{one.RuleWithoutProfile(), one.Created}
	}
	return c, nil
}

// Outcome is the outcome of a recorded call under a candidate configuration.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "allowed"
	Refused Outcome = "refused"
	Asked   Outcome = "asked" // it would wait for an approval
	Unknown Outcome = "unknown"
)

// Trial is the result of evaluating recorded calls under a candidate configuration.
type Trial struct {
	Since    time.Time    `json:"since"`
	Revision string       `json:"config_revision" doc:"The revision of the evaluated configuration."`
	InForce  string       `json:"in_force_revision" doc:"The revision of the current configuration."`
	Calls    int64        `json:"calls" doc:"The number of evaluated calls. Each repetition of a rejected call counts."`
	Others   int64        `json:"other_configurations" doc:"The number of these calls that were decided under another configuration than the current one. Their result can differ even without a change."`
	Same     int64        `json:"same" doc:"The number of calls with the same outcome."`
	Refused  int64        `json:"refused" doc:"The number of calls that would have been rejected instead of allowed."`
	Allowed  int64        `json:"allowed" doc:"The number of calls that would have been allowed instead of rejected or held."`
	Asked    int64        `json:"asked" doc:"The number of calls that would have been held for approval instead of allowed or rejected."`
	Unknown  int64        `json:"unknown" doc:"The number of calls whose outcome cannot be determined."`
	Groups   []TrialGroup `json:"groups" doc:"The calls with another outcome, by tool and reason, largest group first, at most 200 groups."`
	LeftOut  int64        `json:"left_out" doc:"The number of calls with another outcome that are in none of the groups."`
	TookMS   int64        `json:"took_ms"`
}

// TrialGroup is a group of calls to one tool whose outcomes differ for the same reason.
type TrialGroup struct {
	Tool     string    `json:"tool" doc:"The tool id: server:tool."`
	Variant  string    `json:"tool_variant" words:"variant"`
	Called   string    `json:"called,omitempty" doc:"How the tool was called. lane: with a calling tool. name: by its own name."`
	Was      Outcome   `json:"was" enum:"allowed,refused,asked,unknown"`
	Would    Outcome   `json:"would" enum:"allowed,refused,asked,unknown"`
	Check    string    `json:"check,omitempty" words:"check" doc:"The check that would reject the calls, or that rejected them."`
	Code     string    `json:"code,omitempty" doc:"The error code of the rejection. Absent if there is none."`
	Status   string    `json:"status,omitempty" words:"status" doc:"The status that would lock, or locked, the tool. Absent if the tool was not the reason."`
	Why      string    `json:"why" doc:"The reason for the outcome in words."`
	Calls    int64     `json:"calls"`
	Last     time.Time `json:"last" doc:"The time of the most recent of these calls."`
	Examples []string  `json:"examples" doc:"The ids of up to three activity records, newest first."`
}

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
