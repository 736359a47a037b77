package ops

import (
	"context"
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
	out := trialTotals{Trial: Trial{Since: began.Add(-period).UTC(), Revision: next.Revision(), InForce: court.live.Revision()}}
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
