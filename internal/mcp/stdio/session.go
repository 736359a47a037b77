package stdio

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// hasSession reports whether the client has a session.
func (b *bridge) hasSession() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session.hello != nil
}

// initialize opens a session in the place of the one that there is, and answers
// the client. Nothing of the client is looked at in the meantime.
func (b *bridge) initialize(ctx context.Context, hello *message) {
	b.joining.Lock()
	defer b.joining.Unlock()
	d, err := b.connect(ctx, true)
	var answer []byte
	if err == nil {
		answer, err = d.ask(ctx, hello)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		answer = hello.refusal(err)
	}
	if version, ok := agreed(answer); ok {
		d.open = true
		b.mu.Lock()
		b.session = session{version: version, hello: hello, wishes: map[string]*message{}}
		b.mu.Unlock()
	}
	b.out.write(answer)
}

// agreed returns the revision that an answer to initialize agrees to.
func agreed(answer []byte) (version string, ok bool) {
	m, err := wirejson.Parse(answer)
	if err != nil || m.Result == nil {
		return "", false
	}
	version, _ = wirejson.String(wirejson.Find(m.Result, "protocolVersion"))
	return version, true
}

// join returns the connection with the daemon, in which the client's session is
// open.
func (b *bridge) join(ctx context.Context, start bool) (*daemon, error) {
	b.joining.Lock()
	defer b.joining.Unlock()
	d, err := b.connect(ctx, start)
	if err == nil && !d.open && b.hasSession() {
		err = b.reopen(ctx, d)
	}
	return d, err
}

// errAnother says that the daemon is not the one that the client has met.
var errAnother = errors.New("MCPProxy was started anew in another version: start the client's connection anew, too")

// reopen opens the client's session again. The client does not notice. b.joining
// is held.
func (b *bridge) reopen(ctx context.Context, d *daemon) error {
	b.mu.Lock()
	s := b.session
	wishes := slices.Collect(maps.Values(s.wishes))
	b.mu.Unlock()
	answer, err := d.ask(ctx, s.hello)
	if err != nil {
		return err
	}
	switch version, ok := agreed(answer); {
	case !ok:
		return errors.New("MCPProxy opens no new session")
	case version != s.version:
		return errAnother
	}
	d.send(append(wirejson.AppendNotification(nil, mcp.Initialized, nil), '\n'))
	// What is refused now is lost with the old session.
	for _, msg := range wishes {
		if _, err := d.ask(ctx, msg); err != nil {
			return err
		}
	}
	d.open = true
	b.Logger.Info("a new session with the daemon", "cause", "it did not know the old one")
	return nil
}

// The pauses between two tries to have a session again, so that what the server
// says by itself arrives.
const (
	minPause = time.Second
	maxPause = 30 * time.Second
)

// comeBack opens the client's session again once there is a daemon. One that has
// gone is not started for it.
func (b *bridge) comeBack(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		select {
		case <-ctx.Done():
			return
		case <-b.closing:
			return
		case <-time.After(pause):
		}
		if _, err := b.join(ctx, false); err == nil {
			b.last()
			return
		}
	}
}

// maxWishes is how many wishes are remembered.
const maxWishes = 1024

// remember keeps what the client asks of its session for as long as it lasts:
// the level of log messages, and the resources it wants to hear of. A session
// that takes the place of this one gets to hear it, too.
func (b *bridge) remember(msg *message) {
	key := "level"
	switch {
	case msg.modern:
		return
	case msg.Method == mcp.Subscribe, msg.Method == mcp.Unsubscribe:
		uri, _ := wirejson.String(wirejson.Find(msg.Params, "uri"))
		key = "uri " + uri
	case msg.Method != mcp.SetLevel:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wishes := b.session.wishes // nil: there is no session
	if msg.Method == mcp.Unsubscribe {
		delete(wishes, key)
	} else if wishes != nil && len(wishes) < maxWishes {
		wishes[key] = msg
	}
}
