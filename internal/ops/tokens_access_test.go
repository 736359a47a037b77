package ops

import (
	"errors"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

// quiet is a log that accepts refusals. Its other methods are not used.
type quiet struct{ ActivityLog }

func (quiet) Append(*activity.Record) error { return nil }

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "8w": 56 * 24 * time.Hour, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "0.5d": 12 * time.Hour, "90s": 90 * time.Second,
		"": -1, "d": -1, "30": -1, "1h2d": -1, "30dd": -1, "x": -1, "9999999999d": -1, "-": -1,
	} {
		got, ok := parseLifetime(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// TestInvalidTokens checks that an invalid token is rejected with the name of the parameter before anything is stored.
// An agent cannot create tokens.
func TestInvalidTokens(t *testing.T) {
	w := catalogtest.New(t, func(c *config.Config) { c.Profiles = []config.Profile{{Name: "research"}} })
	a := NewAccessOperations(NewGateway(GatewayDeps{Log: quiet{}, Gate: &gate.Gate{Deps: gate.Deps{Config: w.Config, Catalog: w.Catalog, Logger: catalogtest.Logger}}}), auth.NewAgentTokens(nil, t.TempDir(), nil, nil))
	for _, c := range []struct {
		in        CreateTokenRequest
		code      problem.Code
		parameter string
	}{
		{CreateTokenRequest{Name: ""}, problem.InvalidParameter, "name"},
		{CreateTokenRequest{Name: "a b"}, problem.InvalidParameter, "name"},
		{CreateTokenRequest{Name: "a#b"}, problem.InvalidParameter, "name"},
		{CreateTokenRequest{Name: "a", Profile: "reserch"}, problem.NotFound, "profile"},
		{CreateTokenRequest{Name: "a", Servers: []string{"s", "a:b"}}, problem.InvalidParameter, "servers"},
		{CreateTokenRequest{Name: "a", Servers: []string{""}}, problem.InvalidParameter, "servers"},
		{CreateTokenRequest{Name: "a", Lanes: []string{"read", "Write"}}, problem.InvalidParameter, "lanes"},
		{CreateTokenRequest{Name: "a", ExpiresIn: "soon"}, problem.InvalidParameter, "expires_in"},
		{CreateTokenRequest{Name: "a", ExpiresIn: "1s"}, problem.InvalidParameter, "expires_in"},
		{CreateTokenRequest{Name: "a", ExpiresIn: "-1h"}, problem.InvalidParameter, "expires_in"},
		{CreateTokenRequest{Name: "a", ExpiresIn: "9999w"}, problem.InvalidParameter, "expires_in"},
	} {
		_, err := a.CreateToken(t.Context(), catalogtest.AdminCaller, c.in)
		p, _ := errors.AsType[*problem.Problem](err)
		if p == nil || p.Code != c.code || p.Detail("parameter") != c.parameter {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
	if _, err := a.CreateToken(t.Context(), catalogtest.AgentCaller, CreateTokenRequest{Name: "a", Profile: "research"}); problem.From(err).Code != problem.Forbidden {
		t.Errorf("an agent: %v", err)
	}
	if _, err := a.RevokeToken(t.Context(), catalogtest.AgentCaller, TokenRef{"a"}); problem.From(err).Code != problem.Forbidden {
		t.Errorf("an agent revokes: %v", err)
	}
}
