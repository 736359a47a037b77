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

func tokenCreate(r *run) command {
	in := ops.CreateTokenRequest{}
	return command{
		complete: fixed(), // a new name
		flags:    map[string]any{"profile": &in.Profile, "servers": (*commaList)(&in.Servers), "lanes": (*commaList)(&in.Lanes), "expires": &in.ExpiresIn},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			in.Name = args[0]
			made, err := api.CreateToken.Call(ctx, c, in)
			if err != nil {
				return err
			}
			return r.print(made, func(p *printer) { writeToken(p, made) })
		}),
	}
}

// writeToken writes only the token to stdout, so that it can be piped.
func writeToken(p *printer, made ops.CreatedToken) {
	p.line("%s", printable(made.Token))
	p.note("This is shown once, and kept nowhere. %s reaches %s.", visibleLine(made.Name), reaches(made.TokenView))
	if made.Warning != "" {
		p.note("%s", oneLine(made.Warning))
	}
	p.note("A client sends it as Authorization: Bearer TOKEN; one that starts `mcpproxy stdio` has it in %s.", tokenVariable)
}

// reaches describes what a token may reach.
func reaches(t ops.TokenView) string {
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
	return oneLine(out)
}

func writeTokens(p *printer, all ops.TokenList) {
	if len(all.Tokens) == 0 {
		p.note("There is no agent token. Make one with `mcpproxy token create NAME`.")
		return
	}
	t := table{p: p, header: []string{"NAME", "PROFILE", "SERVERS", "LANES", "EXPIRES", "LAST USED"}, narrow: slices.Concat(
		shorten("SERVERS", 16), leaveOut("LAST USED"), shorten("NAME", 16), leaveOut("SERVERS", "LANES"), shorten("NAME", 8))}
	for _, one := range all.Tokens {
		expires := cmp.Or(p.moment(one.ExpiresAt), "never")
		if one.Expired {
			expires = "expired"
		}
		t.add(visibleLine(one.Name), oneLine(cmp.Or(one.Profile, "-")), oneLine(cmp.Or(strings.Join(one.Servers, ","), "all")),
			oneLine(cmp.Or(strings.Join(one.Lanes, ","), "all")), expires, cmp.Or(p.moment(one.LastUsedAt), "never"))
	}
	t.write()
	for _, one := range all.Tokens {
		if one.Warning != "" {
			p.note("%s: %s", visibleLine(one.Name), oneLine(one.Warning))
		}
	}
}

func tokenNamed(args []string) (ops.TokenRef, error) { return ops.TokenRef{Name: args[0]}, nil }

func writeRevoked(p *printer, done ops.RevokedToken) {
	p.line("Revoked %s. Its sessions have ended, and it is good for nothing any more.", visibleLine(done.Revoked))
}

func writeProfiles(p *printer, all ops.ProfileList) {
	if len(all.Profiles) == 0 {
		p.note("There is no profile. They stand under profiles in the file that `mcpproxy config path` names.")
		return
	}
	t := table{p: p, header: []string{"NAME", "SERVERS", "TOOLS", "LANES"}, right: map[int]bool{1: true, 2: true}, narrow: shorten("NAME", 8)}
	for _, one := range all.Profiles {
		tools := 0
		for _, s := range one.Reaches {
			tools += s.Callable
		}
		t.add(visibleLine(one.Name), strconv.Itoa(len(one.Reaches)), strconv.Itoa(tools), oneLine(cmp.Or(strings.Join(one.Lanes, ","), "all")))
	}
	t.write()
}

func profileShow(r *run) command {
	return command{complete: r.live(profileNames), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		all, err := api.ListProfiles.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		var names []string
		for _, one := range all.Profiles {
			if one.Name == args[0] {
				return r.print(one, func(p *printer) { writeProfile(p, one) })
			}
			names = append(names, one.Name)
		}
		hint := "See the profiles with `mcpproxy profile list`."
		if near := search.ClosestName(args[0], names); near != "" {
			hint = "Did you mean '" + near + "'? " + hint
		}
		return problem.Newf(problem.NotFound, "There is no profile '%s'.", printable(args[0])).WithHint(hint)
	})}
}

func writeProfile(p *printer, one ops.ProfileView) {
	var f fields
	f.add("Name", visibleLine(one.Name))
	f.add("Address", "/mcp/p/"+visibleLine(one.Name)+", /mcp/p/"+visibleLine(one.Name)+"/all")
	f.add("Servers", oneLine(cmp.Or(strings.Join(one.Servers, ", "), "all")))
	for _, t := range one.Tools {
		f.add("Tools", oneLine("of "+t.Server+": "+strings.Join(t.Patterns, ", ")))
	}
	f.add("Lanes", oneLine(cmp.Or(strings.Join(one.Lanes, ", "), "all")))
	for _, s := range one.Reaches {
		f.add("Reaches", oneLine(s.Server)+", "+strconv.Itoa(s.Callable)+" of "+strconv.Itoa(s.Tools)+" tools callable")
	}
	f.write(p)
}
