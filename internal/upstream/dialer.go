package upstream

import (
	"net/url"
	"sync"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// dialer opens links to one server by its transport.
type dialer struct {
	*serverBase
	account transport.ServerAccount // nil: no OAuth account
	budget  *transport.MemoryBudget // for large messages

	mu     sync.Mutex
	client transport.HTTPClient // shared by clients' own HTTP links; guarded by mu
}

// dial opens a link that reports to up. sse selects the legacy SSE transport. own is set
// for a link of one client.
func (d *dialer) dial(up transport.Reporter, place *process.StartSlot, sse, own bool) (transport.Link, error) {
	o := transport.LinkOptions{IDs: &d.ids, Reports: up, Budget: d.budget, Version: d.ClientVersion, Own: own}
	spec := &d.Spec
	switch {
	case spec.MissingReason != "" && spec.MissingVariable:
		return nil, transport.NeedsVariableError(spec.MissingReason)
	case spec.MissingReason != "":
		return nil, transport.NeedsSecretError(spec.MissingReason)
	}
	if spec.Transport == Stdio {
		proc, err := process.Start(process.Command{Name: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Installs: d.runner.Installs}, d.launch)
		if err != nil {
			return nil, err
		}
		source := d.runner.RegistryURL(spec.Args, spec.Env)
		return transport.NewStdioLink(proc, process.NewStartWatch(proc, d.runner, spec.ConnectTime(), place, source), d.log, o), nil
	}
	a := transport.ServerAddress{URL: spec.URL, Headers: spec.Headers, Account: d.account, Dial: d.newClient}
	if own {
		a.Dial = d.sharedClient
	}
	var (
		l   transport.Link
		err error
	)
	switch {
	case sse:
		l, err = transport.NewSSELink(a, o)
	case spec.Transport == HTTP:
		l, err = transport.NewHTTPLink(a, o)
	default:
		err = problem.OwnTextErrorf("the transport %s is not known", spec.Transport)
	}
	if err != nil {
		return nil, err // a nil interface, not a nil pointer in one
	}
	return l, nil
}

// newClient returns an HTTP client for u.
func (d *dialer) newClient(u *url.URL) (transport.HTTPClient, error) {
	return transport.NewClient(u, d.Spec.AllowPrivate)
}

// sharedClient returns the HTTP client that all own links share.
func (d *dialer) sharedClient(u *url.URL) (transport.HTTPClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		client, err := d.newClient(u)
		if err != nil {
			return nil, err
		}
		d.client = client
	}
	return borrowedClient{d.client}, nil
}

// borrowedClient is a client that stays open when one of its users closes it.
type borrowedClient struct{ transport.HTTPClient }

func (borrowedClient) Close() {}

// closeIdle closes shared connections after a long idle time.
func (d *dialer) closeIdle(now time.Time) {
	d.mu.Lock()
	client := d.client
	d.mu.Unlock()
	if client != nil {
		client.CloseIdle(now)
	}
}

// close closes the shared connections.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		d.client.Close()
		d.client = nil
	}
}
