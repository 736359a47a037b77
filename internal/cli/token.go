package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// tokenVariable is the environment variable with the token of a client that starts `mcpproxy stdio`.
const tokenVariable = "MCPPROXY_TOKEN"

func newTokenCreateCommand(r *invocation) commandSpec {
	in := ops.CreateTokenRequest{}
	return commandSpec{
		complete: newFixedCompletion(), // a new name
		flags:    map[string]any{"profile": &in.Profile, "servers": (*commaListFlag)(&in.Servers), "lanes": (*commaListFlag)(&in.Lanes), "expires": &in.ExpiresIn},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			in.Name = args[0]
			made, err := api.CreateToken.Call(ctx, c, in)
			if err != nil {
				return err
			}
			return r.printOutput(made, func(p *printer) { writeCreatedToken(p, made) })
		}),
	}
}

// writeCreatedToken writes only the token to stdout, so that it can be piped.
func writeCreatedToken(p *printer, made ops.CreatedToken) {
	p.writeLine("%s", toPrintable(made.Token))
	p.addNote("This is shown once, and kept nowhere. %s reaches %s.", escapeInvisibleLine(made.Name), tokenScopeText(made.TokenView))
	if made.Warning != "" {
		p.addNote("%s", toOneLine(made.Warning))
	}
	p.addNote("A client sends it as Authorization: Bearer TOKEN; one that starts `mcpproxy stdio` has it in %s.", tokenVariable)
}

// tokenScopeText describes what a token may reach.
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
	if len(all.Tokens) == 0 {
		p.addNote("There is no agent token. Make one with `mcpproxy token create NAME`.")
		return
	}
	t := table{p: p, header: []string{"NAME", "PROFILE", "SERVERS", "LANES", "EXPIRES", "LAST USED"}, narrowingSteps: slices.Concat(
		columnTruncationStep("SERVERS", 16), columnHidingSteps("LAST USED"), columnTruncationStep("NAME", 16), columnHidingSteps("SERVERS", "LANES"), columnTruncationStep("NAME", 8))}
	for _, one := range all.Tokens {
		expires := cmp.Or(p.formatTime(one.ExpiresAt), "never")
		if one.Expired {
			expires = "expired"
		}
		t.addRow(escapeInvisibleLine(one.Name), toOneLine(cmp.Or(one.Profile, "-")), toOneLine(cmp.Or(strings.Join(one.Servers, ","), "all")),
			toOneLine(cmp.Or(strings.Join(one.Lanes, ","), "all")), expires, cmp.Or(p.formatTime(one.LastUsedAt), "never"))
	}
	t.write()
	for _, one := range all.Tokens {
		if one.Warning != "" {
			p.addNote("%s: %s", escapeInvisibleLine(one.Name), toOneLine(one.Warning))
		}
	}
}

func parseTokenRef(args []string) (ops.TokenRef, error) { return ops.TokenRef{Name: args[0]}, nil }

func writeRevokedToken(p *printer, done ops.RevokedToken) {
	p.writeLine("Revoked %s. Its sessions have ended, and it is good for nothing any more.", escapeInvisibleLine(done.Revoked))
}

func writeProfileTable(p *printer, all ops.ProfileList) {
	if len(all.Profiles) == 0 {
		p.addNote("There is no profile. They stand under profiles in the file that `mcpproxy config path` names.")
		return
	}
	t := table{p: p, header: []string{"NAME", "SERVERS", "TOOLS", "LANES"}, rightAligned: map[int]bool{1: true, 2: true}, narrowingSteps: columnTruncationStep("NAME", 8)}
	for _, one := range all.Profiles {
		tools := 0
		for _, s := range one.Reaches {
			tools += s.Callable
		}
		t.addRow(escapeInvisibleLine(one.Name), strconv.Itoa(len(one.Reaches)), strconv.Itoa(tools), toOneLine(cmp.Or(strings.Join(one.Lanes, ","), "all")))
	}
	t.write()
}

func newProfileShowCommand(r *invocation) commandSpec {
	return commandSpec{complete: r.completeFromDaemon(profileNames), run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		all, err := api.ListProfiles.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		var names []string
		for _, one := range all.Profiles {
			if one.Name == args[0] {
				return r.printOutput(one, func(p *printer) { writeProfile(p, one) })
			}
			names = append(names, one.Name)
		}
		hint := "See the profiles with `mcpproxy profile list`."
		if near := search.ClosestName(args[0], names); near != "" {
			hint = "Did you mean '" + near + "'? " + hint
		}
		return problem.Newf(problem.NotFound, "There is no profile '%s'.", toPrintable(args[0])).WithHint(hint)
	})}
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
		f.add("Reaches", toOneLine(s.Server)+", "+strconv.Itoa(s.Callable)+" of "+strconv.Itoa(s.Tools)+" tools callable")
	}
	f.write(p)
}
