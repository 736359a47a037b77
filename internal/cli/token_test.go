package cli

import (
	"context"
	"strings"
	"testing"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// tokenAndProfileOperations returns the fake's operations on tokens and profiles.
func (f *fakeOperations) tokenAndProfileOperations() []api.Operation {
	expires, used := parseRFC3339("2026-02-14T10:30:00Z"), parseRFC3339("2026-01-15T09:00:00Z")
	ci := ops.TokenView{Name: "ci", Profile: "research", Servers: []string{"github", "web-*"}, Lanes: []string{"read"}, CreatedBy: "admin",
		CreatedAt: parseRFC3339("2026-01-15T08:00:00Z"), ExpiresAt: &expires, LastUsedAt: &used}
	old := ops.TokenView{Name: "old", CreatedBy: "admin", CreatedAt: parseRFC3339("2025-01-15T08:00:00Z"), ExpiresAt: &used, Expired: true,
		Warning: "No server matches '\x1b[31mgone'."}
	presently := ops.PresenceView{On: true, Kind: presence.Passphrase, Since: &used, Fingerprint: "sha256:" + strings.Repeat("0", 64), Void: "The fingerprint of the anchor is missing in the keyring.", Remedy: "Prove it.",
		Places: []ops.PresencePlace{{Name: "the keyring", State: presence.Missing}}, Bad: []string{"abc"}, Unsigned: []string{`approve "tool"`}}
	presenceNow := func(context.Context, ops.Caller, ops.Nothing) (ops.PresenceView, error) {
		return presently, nil
	}
	return []api.Operation{
		api.GetPresence.WithHandler(presenceNow), api.JoinPresence.WithHandler(presenceNow), api.ResetPresence.WithHandler(presenceNow),
		api.ListTokens.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.TokenList, error) {
			return ops.TokenList{Tokens: []ops.TokenView{ci, old}}, nil
		}),
		api.CreateToken.WithHandler(func(_ context.Context, _ ops.Caller, in ops.CreateTokenRequest) (ops.CreatedToken, error) {
			if in.ExpiresIn == "soon" {
				return ops.CreatedToken{}, problem.New(problem.InvalidParameter, "Invalid expires_in 'soon'", "")
			}
			made := ops.TokenView{Name: in.Name, Profile: in.Profile, Servers: in.Servers, Lanes: in.Lanes, Warning: old.Warning}
			return ops.CreatedToken{TokenView: made, Token: "mcpp_t_secret"}, nil
		}),
		api.RevokeToken.WithHandler(func(_ context.Context, _ ops.Caller, in ops.TokenRef) (ops.RevokedToken, error) {
			return ops.RevokedToken{Revoked: in.Name}, nil
		}),
		api.ListProfiles.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.ProfileList, error) {
			return ops.ProfileList{Profiles: []ops.ProfileView{
				{Name: "research", Servers: []string{"github", "web-*"}, Tools: []ops.ProfileTools{{Server: "github", Patterns: []string{"list_*", "get_*"}}}, Lanes: []string{"read"},
					Reaches: []ops.Reached{{Server: "github", Tools: 3, Callable: 2}}},
				{Name: "open"},
			}}, nil
		}),
	}
}

func TestTokenTables(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for name, line := range map[string]string{
		"token-create":      "token create ci --profile research --servers github,web-* --lanes read,write --expires 30d",
		"token-create-all":  "token create everything",
		"token-create-json": "token create ci --lanes read -o json",
		"token-list":        "token list",
		"token-revoke":      "token revoke ci",
		"profile-list":      "profile list",
		"profile-show":      "profile show research",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.stderr)
		}
		compareWithGolden(t, name, got.stdout+stderrSection(got.stderr))
		if strings.ContainsAny(got.stdout+got.stderr, "\x1b\u202e\a") {
			t.Errorf("%s: the output contains terminal control sequences", line)
		}
	}
	if got := w.runCommand("token", "create", "ci"); got.stdout != "mcpp_t_secret\n" || strings.Contains(got.stderr, "secret") {
		t.Errorf("stdout contains more than the token: %q, %q", got.stdout, got.stderr)
	}
	for line, code := range map[string]int{
		"token create ci --expires soon": problem.ExitUsage, "token create": problem.ExitUsage, "token create a b": problem.ExitUsage,
		"profile show reserch": problem.ExitNotFound, "token revoke": problem.ExitUsage,
	} {
		if got := w.runCommand(strings.Fields(line)...); got.code != code {
			t.Errorf("%s: exit code %d, want %d", line, got.code, code)
		}
	}
}

// TestClientTokenFlag checks that an invalid token is rejected and that the error does not contain it.
func TestClientTokenFlag(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"": true, "mcpp_t_0123": true, "a b": false, "a\r\nX-API-Key: b": false, "tökén": false} {
		r := newInvocation(Deps{Getenv: func(name string) string {
			if name == tokenVariable {
				return value
			}
			return ""
		}})
		token, err := r.agentTokenFromEnv()
		if ok != (err == nil) || ok && token != value {
			t.Errorf("%q gives %q, %v", value, token, err)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the error contains %q: %v", value, err)
		}
	}
}
