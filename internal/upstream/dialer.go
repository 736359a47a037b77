package upstream

import (
	"net/url"
	"sync"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// dialer makes links to one server, of its transport.
type dialer struct {
	*base
	account transport.Account // nil: nothing proves who asks
	budget  *transport.Budget // where its large messages are read

	mu     sync.Mutex
	client transport.Client // that clients' own links share over HTTP; guarded by mu
}

// dial makes a link that reports to up. sse says that it is of the older
// transport. own is for one client alone.
func (d *dialer) dial(up transport.Reports, place *process.StartSlot, sse, own bool) (transport.Link, error) {
	o := transport.Options{IDs: &d.ids, Reports: up, Budget: d.budget, Version: d.ClientVersion, Own: own}
	spec := &d.Spec
	switch {
	case spec.Lacks != "" && spec.LacksVariable:
		return nil, transport.NeedsVariable(spec.Lacks)
	case spec.Lacks != "":
		return nil, transport.NeedsSecret(spec.Lacks)
	}
	if spec.Transport == Stdio {
		proc, err := process.Start(process.Command{Name: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Installs: d.runner.Installs}, d.launch)
		if err != nil {
			return nil, err
		}
		source := d.runner.Source(spec.Args, spec.Env)
		return transport.NewStdio(proc, process.NewStartWatch(proc, d.runner, spec.ConnectTime(), place, source), d.log, o), nil
	}
	a := transport.Address{URL: spec.URL, Headers: spec.Headers, Account: d.account, Dial: d.dialled}
	if own {
		a.Dial = d.shared
	}
	var (
		l   transport.Link
		err error
	)
	switch {
	case sse:
		l, err = transport.NewSSE(a, o)
	case spec.Transport == HTTP:
		l, err = transport.NewHTTP(a, o)
	default:
		err = problem.Ownf("the transport %s is not known", spec.Transport)
	}
	if err != nil {
		return nil, err // no link, not even one that is nil
	}
	return l, nil
}

// dialled returns the connections to u.
func (d *dialer) dialled(u *url.URL) (transport.Client, error) {
	return transport.NewClient(u, d.Spec.AllowPrivate)
}

// shared returns the connections that all own links share.
func (d *dialer) shared(u *url.URL) (transport.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		client, err := d.dialled(u)
		if err != nil {
			return nil, err
		}
		d.client = client
	}
	return lent{d.client}, nil
}

// lent is a client that goes on when one of its users is done.
type lent struct{ transport.Client }

func (lent) Close() {}

// tidy closes shared connections that have been idle for long.
func (d *dialer) tidy(now time.Time) {
	d.mu.Lock()
	client := d.client
	d.mu.Unlock()
	if client != nil {
		client.Reap(now)
	}
}

// close closes the shared connections, which nobody uses any more.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		d.client.Close()
		d.client = nil
	}
}
