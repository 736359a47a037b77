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
	return b.session.initialize != nil
}

// openSession opens a new session and answers the client. No other message is handled in the meantime.
func (b *bridge) openSession(ctx context.Context, hello *message) {
	b.joinMu.Lock()
	defer b.joinMu.Unlock()
	d, err := b.connectDaemon(ctx, true)
	var answer []byte
	if err == nil {
		answer, err = d.roundTrip(ctx, hello)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		answer = hello.errorReply(err)
	}
	if version, ok := agreedVersion(answer); ok {
		d.open = true
		b.mu.Lock()
		b.session = clientSession{version: version, initialize: hello, settings: map[string]*message{}}
		b.mu.Unlock()
	}
	b.out.writeLine(answer)
}

// agreedVersion returns the protocol version of a reply to initialize.
func agreedVersion(answer []byte) (version string, ok bool) {
	m, err := wirejson.ParseServerMessage(answer)
	if err != nil || m.Result == nil {
		return "", false
	}
	version, _ = wirejson.String(wirejson.Find(m.Result, "protocolVersion"))
	return version, true
}

// connectWithSession returns a connection on which the client's session is open.
func (b *bridge) connectWithSession(ctx context.Context, start bool) (*daemonConn, error) {
	b.joinMu.Lock()
	defer b.joinMu.Unlock()
	d, err := b.connectDaemon(ctx, start)
	if err == nil && !d.open && b.hasSession() {
		err = b.reopenSession(ctx, d)
	}
	return d, err
}

// errOtherVersion is the error if a daemon of another version has started.
var errOtherVersion = errors.New("MCPProxy was restarted with another version: restart the client's connection too")

// reopenSession opens the client's session again without the client's involvement. b.joinMu is held.
func (b *bridge) reopenSession(ctx context.Context, d *daemonConn) error {
	b.mu.Lock()
	s := b.session
	wishes := slices.Collect(maps.Values(s.settings))
	b.mu.Unlock()
	answer, err := d.roundTrip(ctx, s.initialize)
	if err != nil {
		return err
	}
	switch version, ok := agreedVersion(answer); {
	case !ok:
		return errors.New("MCPProxy opens no new session")
	case version != s.version:
		return errOtherVersion
	}
	d.sendLine(append(wirejson.AppendNotification(nil, mcp.Initialized, nil), '\n'))
	// Settings that are rejected now are lost with the old session.
	for _, msg := range wishes {
		if _, err := d.roundTrip(ctx, msg); err != nil {
			return err
		}
	}
	d.open = true
	b.Logger.Info("a new session with the daemon", "cause", "it did not know the old one")
	return nil
}

// The pauses between attempts to reopen the session. The client needs the session to receive the server's
// notifications.
const (
	minPause = time.Second
	maxPause = 30 * time.Second
)

// restoreSession reopens the client's session when a daemon runs again. It does not start a daemon.
func (b *bridge) restoreSession(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		select {
		case <-ctx.Done():
			return
		case <-b.closing:
			return
		case <-time.After(pause):
		}
		if _, err := b.connectWithSession(ctx, false); err == nil {
			b.sendEndLineIfInputEnded()
			return
		}
	}
}

// maxSettings limits the number of stored settings.
const maxSettings = 1024

// rememberSetting stores the log level and the resource subscriptions of the session, so that reopenSession can repeat
// them.
func (b *bridge) rememberSetting(msg *message) {
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
	wishes := b.session.settings // nil if there is no session
	if msg.Method == mcp.Unsubscribe {
		delete(wishes, key)
	} else if wishes != nil && len(wishes) < maxSettings {
		wishes[key] = msg
	}
}
