package cli

import (
	"mcpproxy/internal/connect"
	"mcpproxy/internal/doctor"
	"mcpproxy/internal/permission"
)

// doctorClients are the clients of this account, as the doctor asks for them.
type doctorClients struct{ r *run }

// Look tells how they are connected to the MCPProxy at an address.
func (d doctorClients) Look(address string) ([]doctor.Client, error) {
	env, err := clientsOf(d.r)
	if err != nil {
		return nil, err
	}
	account := accountAt(d.r, env, connect.Place{Base: connect.Base(address)})
	all, err := account.List()
	if err != nil {
		return nil, err
	}
	var found []doctor.Client
	for _, v := range all.Clients {
		if !v.Found {
			continue
		}
		c := seenClient(v)
		if len(c.Lanes) > 0 {
			plan, err := permission.Prepare(env, v.ID, account.Tools())
			c.Written = err == nil && !plan.Changed
		}
		found = append(found, c)
	}
	return found, nil
}

func seenClient(v connect.ClientView) doctor.Client {
	c := doctor.Client{ID: v.ID, Name: v.Name, Path: v.Path, Entry: v.LeadsTo, Foreign: v.Foreign, Missing: v.Missing}
	if !v.Connected || !v.Permissions.Writable {
		return c
	}
	for _, lane := range v.Permissions.Lanes {
		if !lane.Right {
			c.Lanes = append(c.Lanes, doctor.Lane{Name: lane.Tool, Does: lane.Verdict.Words(), Want: lane.Wanted.Words(), Rule: placed(lane.Rule), Denied: lane.Verdict == permission.Denied})
		}
	}
	return c
}
