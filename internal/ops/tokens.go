package ops

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// AccessOperations implements the operations on agent tokens, profiles and presence.
type AccessOperations struct {
	gateway *Gateway
	tokens  *auth.AgentTokens
}

// NewAccessOperations returns an AccessOperations.
func NewAccessOperations(g *Gateway, t *auth.AgentTokens) *AccessOperations {
	return &AccessOperations{g, t}
}

// TokenRef identifies a token.
type TokenRef struct {
	Name string `path:"name" doc:"The name of the token."`
}

// CreateTokenRequest is a request to create a token. An absent list means no limit.
type CreateTokenRequest struct {
	Name      string   `json:"name" required:"true" doc:"The name of the token. Its calls are recorded with the actor agent:NAME."`
	Profile   string   `json:"profile" doc:"The profile that limits the token on every endpoint."`
	Servers   []string `json:"servers" doc:"Names or patterns of the servers that the token may use. Default: all servers."`
	Lanes     []string `json:"lanes" enum:"read,write,destructive" doc:"The lanes in which the token may call tools. Default: all lanes."`
	ExpiresIn string   `json:"expires_in" doc:"The lifetime of the token, such as 12h, 30d or 8w. Default: no expiry."`
}

// Example returns an example for the OpenAPI document.
func (CreateTokenRequest) Example() string {
	return `{"name": "ci", "profile": "research", "lanes": ["read"], "expires_in": "30d"}`
}

// TokenView describes a token. An absent list means no limit.
type TokenView struct {
	Name       string     `json:"name"`
	Profile    string     `json:"profile,omitempty" doc:"The profile that limits the token. Absent if there is none."`
	Servers    []string   `json:"servers,omitempty" doc:"Names or patterns of the servers that the token may use. Absent if all servers are allowed."`
	Lanes      []string   `json:"lanes,omitempty" doc:"The lanes in which the token may call tools: read, write, destructive. Absent if all lanes are allowed."`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty" doc:"The time at which the token expires. Absent if it never does."`
	Expired    bool       `json:"expired,omitempty"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty" doc:"The time of the last use. Absent if none is known."`
	Answers    bool       `json:"answers,omitempty" doc:"Whether ask.answer_by_client lists the token: then a form in the client that presents it may approve held calls."`
	Warning    string     `json:"warning,omitempty" doc:"The problem because of which the token grants less access than its settings say, or none. Absent if there is no problem."`
}

// TokenList lists all tokens, sorted by name.
type TokenList struct {
	Tokens []TokenView `json:"tokens"`
}

// CreatedToken is a new token with its text, which is shown only once.
type CreatedToken struct {
	TokenView
	Token string `json:"token" doc:"The token. MCPProxy does not store it and shows it only in this response."`
}

// RevokedToken is the result of revoking a token.
type RevokedToken struct {
	Revoked string `json:"revoked"`
}

// Limits of a token's lifetime.
const (
	shortestLife = time.Minute
	longestLife  = 10 * 365 * 24 * time.Hour
)

// Tokens returns all tokens, including expired ones.
func (a *AccessOperations) Tokens(ctx context.Context, _ Caller, _ Nothing) (TokenList, error) {
	all, err := a.tokens.ListAll(ctx)
	if err != nil {
		return TokenList{}, toTokenProblem(err, "")
	}
	return TokenList{mapSlice(all, a.tokenView)}, nil
}

// CreateToken creates a token.
func (a *AccessOperations) CreateToken(ctx context.Context, c Caller, in CreateTokenRequest) (made CreatedToken, err error) {
	at, name := a.gateway.Presence.DraftTimeAndNonce(ctx)
	wanted, err := a.buildToken(in, at)
	if err != nil {
		return made, err
	}
	wanted.ID, wanted.By = name, c.Actor.String()
	return made, a.gateway.runConfigChange(c, "create_token", describeToken(wanted), func() error {
		text, t, err := a.tokens.Create(ctx, wanted, func(t *auth.Token) error { return a.gateway.Presence.RequireSigned(ctx, NewTokenClaim(t)) })
		if err == nil {
			made = CreatedToken{a.tokenView(t), text}
		}
		return toTokenProblem(err, in.Name)
	})
}

// NewTokenClaim returns the claim that a user signs to create a token. It contains the complete scope of the token.
func NewTokenClaim(t *auth.Token) presence.Claim {
	limit := func(list []string) string {
		if list == nil {
			return "all"
		}
		return fmt.Sprintf("%q", list)
	}
	return presence.NewClaim("token", t.Name, "profile "+t.Profile, "servers "+limit(t.Servers), "lanes "+limit(t.Lanes), "until "+cmp.Or(formatTime(t.Expires), "revoked"),
		"sha256:"+hex.EncodeToString(t.Hash[:]), "id "+t.ID)
}

// AllTokenClaims returns the claims of all tokens.
func AllTokenClaims(ctx context.Context, tokens *auth.AgentTokens) ([]presence.Claim, error) {
	list, err := tokens.ListAll(ctx)
	return mapSlice(list, func(t auth.Token) presence.Claim { return NewTokenClaim(&t) }), toTokenProblem(err, "")
}

// RevokeToken revokes a token permanently and ends its sessions.
func (a *AccessOperations) RevokeToken(ctx context.Context, c Caller, in TokenRef) (RevokedToken, error) {
	return RevokedToken{in.Name}, a.gateway.runConfigChange(c, "revoke_token", problem.ClipName(in.Name), func() error {
		_, err := a.tokens.Revoke(ctx, in.Name)
		if err = toTokenProblem(err, in.Name); err != nil && problem.From(err).Code == problem.Internal {
			return problem.Newf(problem.Internal, "The token '%s' is revoked, but that could not be stored: it may be valid again after a restart.", problem.ClipName(in.Name)).
				WithHint("Revoke it again; see the log of the daemon for the cause.").Because(err)
		}
		return err
	})
}

// describeToken describes a token for the activity record.
func describeToken(t auth.Token) string {
	out := t.Name
	for _, part := range []struct{ name, value string }{
		{"profile", t.Profile}, {"servers", strings.Join(t.Servers, ",")}, {"lanes", strings.Join(t.Lanes, ",")}, {"expires", formatTime(t.Expires)},
	} {
		if part.value != "" {
			out += " " + part.name + "=" + part.value
		}
	}
	return problem.ClipForDisplay(out, 500)
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// toTokenProblem converts an error of package auth to a problem.
func toTokenProblem(err error, name string) error {
	name = problem.ClipName(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrTokenExists):
		return problem.Newf(problem.Conflict, "A token named '%s' already exists.", name).
			WithHint("Choose another name, or revoke that token first: `mcpproxy token revoke " + name + "`.")
	case errors.Is(err, auth.ErrNoToken):
		return problem.Newf(problem.NotFound, "The token '%s' does not exist.", name).WithHint("See the tokens with `mcpproxy token list`.")
	case errors.Is(err, auth.ErrTooManyTokens):
		return problem.Newf(problem.Conflict, "There are already %d tokens, the maximum.", auth.MaxTokens).
			WithHint("Revoke unused tokens: `mcpproxy token list` shows when each was last used.")
	case errors.Is(err, auth.ErrTokensUnread):
		return problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
	}
	return err
}

// buildToken validates a request and returns the token to create.
func (a *AccessOperations) buildToken(in CreateTokenRequest, now time.Time) (t auth.Token, err error) {
	t = auth.Token{Name: in.Name, Profile: in.Profile, Servers: nilIfEmpty(in.Servers), Lanes: nilIfEmpty(in.Lanes)}
	if err := tool.CheckServerName(in.Name); err != nil {
		return t, invalidTokenParameterError("name", in.Name, "a name that follows the rules for server names: "+err.Error())
	}
	if in.Profile != "" && a.gateway.Config().Profile(in.Profile) == nil {
		return t, a.profileNotFoundError(in.Profile)
	}
	for _, s := range in.Servers {
		if err := config.CheckServerPattern(s); err != nil {
			return t, invalidTokenParameterError("servers", s, "the name of a server, or a pattern such as web-*")
		}
	}
	for _, l := range in.Lanes {
		if _, ok := auth.ParseOperationLane(l); !ok {
			return t, invalidTokenParameterError("lanes", l, strings.Join(auth.OperationLaneNames(), ", "))
		}
	}
	if in.ExpiresIn != "" {
		life, ok := parseLifetime(in.ExpiresIn)
		if !ok || life < shortestLife || life > longestLife {
			return t, invalidTokenParameterError("expires_in", in.ExpiresIn, "a duration from 1 minute to 10 years, such as 12h, 30d or 8w")
		}
		t.Expires = now.Add(life).UTC().Truncate(time.Second)
	}
	return t, nil
}

// nilIfEmpty returns nil for an empty list, because nil means no limit.
func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func invalidTokenParameterError(parameter, value, allowed string) error {
	return problem.Newf(problem.InvalidParameter, "Invalid %s '%s': must be %s", parameter, problem.ClipName(value), allowed).
		WithHint("Use an allowed value, or leave it out if it is optional.").
		With("parameter", parameter).With("value", problem.ClipName(value)).With("allowed", allowed)
}

func (a *AccessOperations) profileNotFoundError(name string) error {
	hint := "See the profiles with `mcpproxy profile list`; they are under profiles in mcp_config.json."
	if near := search.ClosestName(name, profileNames(a.gateway.Config())); near != "" {
		hint = "Did you mean '" + near + "'? " + hint
	}
	return problem.Newf(problem.NotFound, "The profile '%s' does not exist.", problem.ClipName(name)).WithHint(hint).With("parameter", "profile")
}

func profileNames(c *config.Config) []string {
	return mapSlice(c.Profiles, func(p config.Profile) string { return p.Name })
}

// parseLifetime parses a duration with one unit.
func parseLifetime(text string) (time.Duration, bool) {
	for unit, is := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok && len(number) <= 5 {
			d, err := time.ParseDuration(number + "h")
			return d * (is / time.Hour), err == nil && !strings.ContainsAny(number, "hms")
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

func (a *AccessOperations) tokenView(t auth.Token) TokenView {
	v := TokenView{
		Name: t.Name, Profile: t.Profile, Servers: t.Servers, Lanes: t.Lanes, CreatedBy: t.By, CreatedAt: t.Created,
		ExpiresAt: timeOrNil(t.Expires), LastUsedAt: timeOrNil(t.Used), Expired: !t.Expires.IsZero() && !time.Now().Before(t.Expires),
		Answers: a.gateway.Config().ClientMayApprove(t.Name),
	}
	switch {
	case t.Profile != "" && a.gateway.Config().Profile(t.Profile) == nil:
		v.Warning = "The profile '" + t.Profile + "' no longer exists, so the token allows nothing."
	default:
		v.Warning = a.unmatchedPatternsWarning(t.Servers)
	}
	return v
}

// UnknownAnswerByClientWarnings returns warnings about names in ask.answer_by_client that belong to no token.
func UnknownAnswerByClientWarnings(c *config.Config, tokens *auth.AgentTokens) (warnings []string) {
	for _, name := range c.AnswerByClient {
		if !tokens.MayHaveName(name) {
			warnings = append(warnings, fmt.Sprintf("ask.answer_by_client contains '%s', but no token has this name, so no form can approve for it; remove the name, or create the token: `mcpproxy token create %[1]s`", name))
		}
	}
	return warnings
}

// unmatchedPatternsWarning returns a warning about names and patterns that match no server, or "" if all match.
func (a *AccessOperations) unmatchedPatternsWarning(patterns []string) string {
	var none []string
	for _, p := range patterns {
		fits := false
		for _, s := range a.gateway.Config().Servers {
			fits = fits || auth.MatchesPattern(p, s.Name)
		}
		if !fits {
			none = append(none, "'"+p+"'")
		}
	}
	if none == nil {
		return ""
	}
	return "No server matches " + strings.Join(none, ", ") + "."
}

// ProfileView is a profile with the servers and tools that it currently includes. An absent list means no limit.
type ProfileView struct {
	Name    string         `json:"name"`
	Servers []string       `json:"servers,omitempty" doc:"Names or patterns of its servers. Absent if all servers are allowed."`
	Tools   []ProfileTools `json:"tools,omitempty" doc:"The allowed tools, by server. A server without an entry has no limit."`
	Lanes   []string       `json:"lanes,omitempty" doc:"The allowed lanes: read, write, destructive. Absent if all lanes are allowed."`
	Reaches []Reached      `json:"reaches" doc:"The servers that are in the profile now, ordered by name."`
}

// ProfileTools limits the tools of the servers that match a pattern.
type ProfileTools struct {
	Server   string   `json:"server" doc:"A name or pattern."`
	Patterns []string `json:"patterns" doc:"Names or patterns of tools."`
}

// Reached is a server in a profile.
type Reached struct {
	Server   string `json:"server"`
	Tools    int    `json:"tools" doc:"The number of the server's tools that are in the profile."`
	Callable int    `json:"callable" doc:"The number of these tools that can be called."`
}

// ProfileList lists all profiles in the order of the configuration file.
type ProfileList struct {
	Profiles []ProfileView `json:"profiles"`
}

// Profiles returns all profiles.
func (a *AccessOperations) Profiles(context.Context, Caller, Nothing) (ProfileList, error) {
	cfg, snapshot := a.gateway.Config(), a.gateway.Catalog.Current()
	list := ProfileList{[]ProfileView{}}
	for _, p := range cfg.Masked().Profiles {
		v := ProfileView{Name: p.Name, Servers: p.Servers, Lanes: p.Lanes, Reaches: []Reached{}}
		for _, t := range p.Tools {
			v.Tools = append(v.Tools, ProfileTools{t.Server, append([]string{}, t.Patterns...)})
		}
		for _, s := range snapshot.ScopedTo(auth.NewScope(cfg.ProfileRule(p.Name))).Servers() {
			v.Reaches = append(v.Reaches, Reached{s.Name, len(s.Tools), s.Callable})
		}
		list.Profiles = append(list.Profiles, v)
	}
	return list, nil
}
