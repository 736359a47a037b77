package permission

import (
	"mcpproxy/internal/clients"
)

// AccountClients provides access to the clients of one account, and to the journal of changes of their files.
type AccountClients struct {
	Env   clients.Env
	Tools func() []ProxyTool
	// Open opens the journal.
	Open func() (*clients.Journal, error)
}

// WriteRules writes the rules for a client into its file. If dry is set, it only returns the change. It does not ask
// for confirmation, because the caller does.
func (a *AccountClients) WriteRules(client string, dry bool) (Outcome, error) {
	plan, err := PreparePlan(a.Env, client, a.Tools())
	if err != nil || dry || !plan.Changed {
		return Outcome{Preview: plan.Preview}, err
	}
	j, err := a.Open()
	if err != nil {
		return Outcome{}, err
	}
	return plan.Apply(j)
}
