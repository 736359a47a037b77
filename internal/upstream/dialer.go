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
	account transport.ServerAuthorizer // nil: no OAuth account
	budget  *transport.MemoryBudget    // for large messages

	mu     sync.Mutex
	client transport.HTTPClient // shared by clients' own HTTP links; guarded by mu
}

// dialLink opens a link that reports to up. sse selects the legacy SSE transport. own means that the link belongs to
// one client.
func (d *dialer) dialLink(up transport.Reporter, place *process.StartSlot, sse, own bool) (transport.Link, error) {
	o := transport.LinkOptions{IDs: &d.ids, Reports: up, Budget: d.budget, Version: d.ClientVersion, Own: own, Apps: &d.apps, Asks: d.Spec.Auto && !own}
	spec := &d.Spec
	switch {
	case spec.MissingReason != "" && spec.MissingVariable:
		return nil, transport.NeedsVariableError(spec.MissingReason)
	case spec.MissingReason != "":
		return nil, transport.NeedsSecretError(spec.MissingReason)
	}
	if spec.Transport == Stdio {
		command := process.Command{Name: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Installs: d.runner.Installs}
		command, err := d.Sandboxes.Wrap(command, spec.Sandbox, spec.Pin)
		if err != nil {
			return nil, err
		}
		for _, gap := range d.Sandboxes.NotEnforced(spec.Sandbox) {
			up.Log("its sandbox is not complete: " + gap.String())
		}
		proc, err := process.Start(command, d.launch)
		if err != nil {
			return nil, err
		}
		source := d.runner.RegistryURL(spec.Args, spec.Env)
		return transport.NewStdioLink(proc, process.NewStartWatch(proc, d.runner, spec.ConnectTimeLimit(), place, source), d.log, o), nil
	}
	a := transport.ServerAddress{URL: spec.URL, Headers: spec.Headers, Account: d.account, Dial: d.newHTTPClient}
	if own {
		a.Dial = d.sharedHTTPClient
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
		err = problem.TrustedTextErrorf("the transport %s is not known", spec.Transport)
	}
	if err != nil {
		return nil, err // a nil interface, not a nil pointer in one
	}
	return l, nil
}

// newHTTPClient returns an HTTP client for u.
func (d *dialer) newHTTPClient(u *url.URL) (transport.HTTPClient, error) {
	return transport.NewClient(u, d.Spec.AllowPrivate)
}

// sharedHTTPClient returns the HTTP client that all own links share.
func (d *dialer) sharedHTTPClient(u *url.URL) (transport.HTTPClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		client, err := d.newHTTPClient(u)
		if err != nil {
			return nil, err
		}
		d.client = client
	}
	return noCloseClient{d.client}, nil
}

// noCloseClient is a client that stays open when one of its users closes it.
type noCloseClient struct{ transport.HTTPClient }

func (noCloseClient) Close() {}

// closeIdleConnections closes shared connections after a long idle time.
func (d *dialer) closeIdleConnections(now time.Time) {
	d.mu.Lock()
	client := d.client
	d.mu.Unlock()
	if client != nil {
		client.CloseIdle(now)
	}
}

// closeConnections closes the shared connections.
func (d *dialer) closeConnections() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		d.client.Close()
		d.client = nil
	}
}
