// Package trial says what another configuration would have done to the calls on record.
//
// It guarantees that each call is judged by the function that decides about calls
// (policy.Decide), on the facts that its record has and under the rules of the
// configuration that is tried, which the one parser has read; that what follows neither
// from the record nor from what is known now is unknown, and never allowed; that it
// reads the log once, in memory for one record and for what differs; and that nothing is
// called, recorded or changed. What a person has decided about tools counts as it was
// then: a configuration does not change it. Limits, times and who may connect are not
// judged: they are no part of a decision about a call.
package trial

import (
	"context"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
)

// Deps is what Trials are made of.
type Deps struct {
	Each    func(ctx context.Context, f activity.Filter, fn func(*activity.Record) error) error // of the log
	Live    func() *config.Config
	Parse   func(text string) (*config.Config, error)
	Catalog *catalog.Catalog
	Tokens  func(ctx context.Context) ([]auth.Token, error)
	Now     func() time.Time
}

// Trials are the operation.
type Trials struct{ Deps }

// New makes Trials.
func New(d Deps) *Trials { return &Trials{d} }

// Candidate is a configuration that is tried.
type Candidate struct {
	Text   string `json:"text" required:"true" doc:"The configuration file that is tried. Placeholders as in GET /config may stand for secrets."`
	Period string `json:"period" doc:"How far back from now calls are judged: 90s, 30m, 24h, 30d, 2w. 30d when it is left out."`
}

// Example is what a candidate looks like.
func (Candidate) Example() string {
	return `{"text": "{\"intent_declaration\": {\"require_intent\": true}}", "period": "30d"}`
}

// defaultPeriod is how far back calls are judged.
const defaultPeriod = 30 * 24 * time.Hour

// Try judges the calls on record under another configuration.
func (t *Trials) Try(ctx context.Context, _ auth.Caller, in Candidate) (Trial, error) {
	began := t.Now()
	period := defaultPeriod
	if in.Period != "" {
		var ok bool
		if period, ok = activity.ParseSpan(in.Period); !ok || period < time.Second {
			return Trial{}, problem.Newf(problem.InvalidParameter, "Invalid value '%s' for period: must be a span such as 24h, 30d or 2w", problem.Brief(in.Period)).
				With("parameter", "period").With("value", problem.Brief(in.Period))
		}
	}
	next, err := t.Parse(in.Text)
	if err != nil {
		return Trial{}, err
	}
	court, err := t.convene(ctx, next)
	if err != nil {
		return Trial{}, err
	}
	out := tally{Trial: Trial{Since: began.Add(-period).UTC(), Revision: next.Revision(), InForce: court.live.Revision()}}
	calls := activity.Filter{Types: []activity.Type{activity.ToolCall, activity.PolicyDecision}, Since: out.Since}
	err = t.Each(ctx, calls, func(r *activity.Record) error {
		if _, call := policy.ParseVariant(r.Metadata.ToolVariant); call { // else it was refused before there was one
			out.add(r, court.judge(r))
		}
		return nil
	})
	out.TookMS = t.Now().Sub(began).Milliseconds()
	return out.result(), err
}

// convene gets ready what judging needs beside a record.
func (t *Trials) convene(ctx context.Context, next *config.Config) (*court, error) {
	tokens, err := t.Tokens(ctx)
	if err != nil {
		return nil, problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
	}
	c := &court{live: t.Live(), next: next, catalog: t.Catalog, snapshot: t.Catalog.Current(), tokens: map[string]tokenRule{}, tools: map[toolKey]*catalog.Tool{}}
	for _, one := range tokens {
		c.tokens["agent:"+one.Name] = tokenRule{one.Rule(), one.Created}
	}
	return c, nil
}
