package ops

import (
	"context"
	"strings"
	"sync"

	"mcpproxy/internal/problem"
)

// ImportOperations are the operations on clients' servers in the daemon. What they change is
// for people, and on record.
type ImportOperations struct {
	account *ImportAccount
	here    func(Caller) Here
	record  func(c Caller, servers string, do func() error) error
	one     sync.Mutex // imports, one after the other: each sees what the one before has added
}

// NewOperations makes Operations. here is the daemon, as somebody may use it; record
// does something that is put on record before.
func NewOperations(a *ImportAccount, here func(Caller) Here, record func(c Caller, servers string, do func() error) error) *ImportOperations {
	return &ImportOperations{account: a, here: here, record: record}
}

// ImportRequest says which servers are to be taken over, and how.
type ImportRequest struct {
	IDs []string `json:"ids" required:"true" doc:"From the list of what was found, 1 to 1000."`
	ImportOptions
}

// Example is what an import looks like.
func (ImportRequest) Example() string {
	return `{"ids": ["…"], "keyring": true, "confirmed": true} with ids of GET /clients/servers`
}

// FindServers finds the servers that the clients of this account have.
func (o *ImportOperations) FindServers(ctx context.Context, c Caller, _ Nothing) (Findings, error) {
	h, err := o.account.Look(ctx, o.here(c), "")
	if err != nil {
		return Findings{}, err
	}
	return h.Findings, nil
}

// ImportServers takes servers over. The clients' files are read again: an id that is
// not there any more is an error, and then nothing is done.
func (o *ImportOperations) ImportServers(ctx context.Context, c Caller, in ImportRequest) (out Results, err error) {
	o.one.Lock()
	defer o.one.Unlock()
	h, err := o.account.Look(ctx, o.here(c), "")
	if err != nil {
		return Results{}, err
	}
	chosen, err := h.chosen(in.IDs)
	if err != nil {
		return Results{}, err
	}
	if in.DryRun {
		return h.Import(ctx, in.IDs, in.ImportOptions)
	}
	var names []string
	for _, i := range chosen {
		names = append(names, h.all[i].Name)
	}
	err = o.record(c, problem.Brief(strings.Join(names, ", ")), func() error {
		out, err = h.Import(ctx, in.IDs, in.ImportOptions)
		return err
	})
	return out, err
}
