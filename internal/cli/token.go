package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// tokenVariable is the environment variable that contains the agent token for `mcpproxy stdio`.
const tokenVariable = "MCPPROXY_TOKEN"

func newTokenCreateCommand(r *invocation) commandSpec {
	in := ops.CreateTokenRequest{}
	return commandSpec{
		complete: newFixedCompletion(), // no completion for a new name
		flags:    map[string]any{"profile": &in.Profile, "servers": (*commaListFlag)(&in.Servers), "lanes": (*commaListFlag)(&in.Lanes), "expires": &in.ExpiresIn},
		run: operationRunFunc(r, api.CreateToken, func(_ context.Context, _ *api.Client, args []string) (ops.CreateTokenRequest, error) {
			in.Name = args[0]
			return in, nil
		}, writeCreatedToken),
	}
}

// writeCreatedToken writes only the token to stdout, so that it can be piped.
func writeCreatedToken(p *printer, made ops.CreatedToken) {
	p.writeLine("%s", toPrintable(made.Token))
	p.addNote("The token is shown only once. %s can use %s.", escapeInvisibleLine(made.Name), tokenScopeText(made.TokenView))
	if made.Warning != "" {
		p.addNote("%s", toOneLine(made.Warning))
	}
	p.addNote("HTTP clients send it as Authorization: Bearer TOKEN. For a client that starts `mcpproxy stdio`, set it in %s.", tokenVariable)
}

// tokenScopeText describes the scope of a token.
func tokenScopeText(t ops.TokenView) string {
	out := "all servers"
	if len(t.Servers) > 0 {
		out = "the servers " + strings.Join(t.Servers, ", ")
	}
	if t.Profile != "" {
		out += " in the profile " + t.Profile
	}
	if len(t.Lanes) > 0 {
		out += ", to " + strings.Join(t.Lanes, ", ")
	}
	return toOneLine(out)
}

func writeTokenTable(p *printer, all ops.TokenList) {
	list[ops.TokenView]{
		none: "No agent tokens exist. Create one with `mcpproxy token create NAME`.",
		columns: []column[ops.TokenView]{
			{title: "NAME", text: func(t ops.TokenView) string { return t.Name }},
			{title: "PROFILE", text: func(t ops.TokenView) string { return cmp.Or(t.Profile, "-") }},
			{title: "SERVERS", text: func(t ops.TokenView) string { return cmp.Or(strings.Join(t.Servers, ","), "all") }},
			{title: "LANES", text: func(t ops.TokenView) string { return cmp.Or(strings.Join(t.Lanes, ","), "all") }},
			{title: "CREATED", wide: true, cell: func(p *printer, t ops.TokenView) string { return p.formatTime(&t.CreatedAt) }},
			{title: "CREATED BY", wide: true, text: func(t ops.TokenView) string { return t.CreatedBy }},
			{title: "EXPIRES", cell: formatTokenExpiry},
			{title: "LAST USED", cell: func(p *printer, t ops.TokenView) string { return cmp.Or(p.formatTime(t.LastUsedAt), "never") }},
		},
		narrow: slices.Concat(columnTruncationStep("SERVERS", 16), columnHidingSteps("LAST USED"), columnTruncationStep("NAME", 16), columnHidingSteps("SERVERS", "LANES"), columnTruncationStep("NAME", 8)),
		exact:  true,
	}.write(p, all.Tokens)
	for _, one := range all.Tokens {
		if one.Warning != "" {
			p.addNote("%s: %s", escapeInvisibleLine(one.Name), toOneLine(one.Warning))
		}
	}
}

func formatTokenExpiry(p *printer, t ops.TokenView) string {
	if t.Expired {
		return "expired"
	}
	return cmp.Or(p.formatTime(t.ExpiresAt), "never")
}

func parseTokenRef(_ context.Context, _ *api.Client, args []string) (ops.TokenRef, error) {
	return ops.TokenRef{Name: args[0]}, nil
}

func writeRevokedToken(p *printer, done ops.RevokedToken) {
	p.writeLine("Revoked %s. Its sessions have ended, and MCPProxy rejects it from now on.", escapeInvisibleLine(done.Revoked))
}

func writeProfileTable(p *printer, all ops.ProfileList) {
	list[ops.ProfileView]{
		none: "No profiles exist. Add one under profiles in the file that `mcpproxy config path` prints.",
		columns: []column[ops.ProfileView]{
			{title: "NAME", text: func(v ops.ProfileView) string { return v.Name }},
			{title: "SERVERS", right: true, text: func(v ops.ProfileView) string { return strconv.Itoa(len(v.Reaches)) }},
			{title: "TOOLS", right: true, text: countProfileTools},
			{title: "LANES", text: func(v ops.ProfileView) string { return cmp.Or(strings.Join(v.Lanes, ","), "all") }},
			{title: "ENDPOINT", wide: true, text: func(v ops.ProfileView) string { return "/mcp/p/" + v.Name }},
		},
		narrow: columnTruncationStep("NAME", 8),
		exact:  true,
	}.write(p, all.Profiles)
}

// countProfileTools formats the number of callable tools in a profile.
func countProfileTools(v ops.ProfileView) string {
	n := 0
	for _, s := range v.Reaches {
		n += s.Callable
	}
	return strconv.Itoa(n)
}

func newProfileShowCommand(r *invocation) commandSpec {
	return commandSpec{complete: r.completeFromDaemon(profileNames), run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (none ops.ProfileView, err error) {
		all, err := api.ListProfiles.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return none, err
		}
		for _, one := range all.Profiles {
			if one.Name == args[0] {
				return one, nil
			}
		}
		return none, problem.Newf(problem.NotFound, "The profile '%s' does not exist.", toPrintable(args[0])).WithHint("See the profiles with `mcpproxy profile list`.")
	}, writeProfile)}
}

func writeProfile(p *printer, one ops.ProfileView) {
	var f fieldList
	f.add("Name", escapeInvisibleLine(one.Name))
	f.add("Address", "/mcp/p/"+escapeInvisibleLine(one.Name)+", /mcp/p/"+escapeInvisibleLine(one.Name)+"/all")
	f.add("Servers", toOneLine(cmp.Or(strings.Join(one.Servers, ", "), "all")))
	for _, t := range one.Tools {
		f.add("Tools", toOneLine("of "+t.Server+": "+strings.Join(t.Patterns, ", ")))
	}
	f.add("Lanes", toOneLine(cmp.Or(strings.Join(one.Lanes, ", "), "all")))
	for _, s := range one.Reaches {
		f.add("Access", toOneLine(s.Server)+", "+strconv.Itoa(s.Callable)+" of "+strconv.Itoa(s.Tools)+" tools callable")
	}
	f.write(p)
}
