package cli

import (
	"context"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/upstream/secret"
)

// examineClients describes how the MCP clients of this user account are connected to the MCPProxy at an address.
func (r *invocation) examineClients(address string) ([]doctor.ClientFacts, error) {
	env, err := newClientFileEnv(r)
	if err != nil {
		return nil, err
	}
	account := newLocalClientsForEndpoint(r, env, ops.ProxyEndpoint{Base: ops.ListenerURL(address)})
	all, err := account.ListClients()
	if err != nil {
		return nil, err
	}
	direct := r.findDirectServers(env)
	var found []doctor.ClientFacts
	for _, v := range all.Clients {
		if !v.Found {
			continue
		}
		c := toClientFacts(v)
		c.Direct = direct[v.ID]
		if len(c.Lanes) > 0 {
			plan, err := permission.PreparePlan(env, v.ID, account.Tools())
			c.Written = err == nil && !plan.Changed
		}
		found = append(found, c)
	}
	return found, nil
}

// findDirectServers returns the servers that each client reaches without MCPProxy. It ignores unreadable files, because
// examineClients reports them.
func (r *invocation) findDirectServers(env clients.Env) map[string][]string {
	out := map[string][]string{}
	live, err := r.openConfig()
	if err != nil {
		return out
	}
	here := ops.ImportTarget{
		ConfigText: live.ReadFile, CheckNotSelf: live.CheckNotSelfReference,
		ServerNames: func(context.Context) ([]string, error) { return nil, nil },
		ReadSecret:  func(context.Context, string) (string, error) { return "", secret.ErrMissing },
	}
	all, err := ops.NewImporter(env, nil).FindServers(context.Background(), here, "")
	if err != nil {
		return out
	}
	for _, s := range all.Found {
		off := slices.ContainsFunc(s.Notes, func(note string) bool { return strings.HasPrefix(note, "the server is disabled in the client") })
		if isInUserFile(s) && !off {
			out[s.Client] = append(out[s.Client], s.Called)
		}
	}
	return out
}

func toClientFacts(v ops.ClientView) doctor.ClientFacts {
	c := doctor.ClientFacts{ID: v.ID, Name: v.Name, Path: v.Path, Entry: v.LeadsTo, Foreign: v.Foreign, Missing: v.Missing, Broken: v.Broken}
	if !v.Connected || !v.Permissions.Writable {
		return c
	}
	for _, lane := range v.Permissions.Lanes {
		if !lane.Right {
			c.Lanes = append(c.Lanes, doctor.LaneDeviation{Name: lane.Tool, Does: lane.Verdict.Words(), Want: lane.Wanted.Words(), Rule: formatRuleWithPosition(lane.Rule), Denied: lane.Verdict == permission.Denied})
		}
	}
	return c
}
