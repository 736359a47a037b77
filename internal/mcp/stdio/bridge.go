// Package stdio implements `mcpproxy stdio`: it relays MCP between stdin and stdout and the daemon, for clients that only start
// commands. The daemon reads the client's lines unchanged (docs/adr/0050-lines-over-the-socket.md). This side starts a daemon
// if none runs (cli/stdio.go). After a restart of the daemon it reopens the client's session and repeats its subscriptions and
// log level (session.go). A request in flight at that moment gets an error and is not repeated.
//
// Files:
//   - bridge.go: relays lines in both directions
//   - daemon.go: the connection to the daemon, and its open requests
//   - session.go: opens and restores the client's session
//
// Guarantees:
//   - It writes one message per line and nothing else.
//   - The client's messages reach the daemon in order.
//   - A request that is not cancelled gets exactly one reply.
//   - All its memory is limited.
//   - It authenticates with an agent token only: an MCP client is an agent, even over the socket of the CLI.
//   - It parses only the envelope of a message and makes no decisions.
package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// maxLine limits a line of the client, in bytes. The daemon rejects lines above its own limit.
const maxLine = 16 << 20

// maxMessage limits a line of the daemon, in bytes. The daemon's replies are smaller.
const maxMessage = 64 << 20

const (
	// drainTime limits the wait for replies after the end of the input.
	drainTime = 10 * time.Second
	// exitTime limits the wait for a client that does not read after the end of ctx.
	exitTime = time.Second
)

// Options configure Run.
type Options struct {
	In  io.Reader // the client's messages, one per line
	Out io.Writer // the messages to the client, one per line
	// Dial connects to the running daemon.
	Dial func(ctx context.Context) (net.Conn, error)
	// Start starts the daemon. It is called if a message of the client arrives and no daemon runs. The client receives
	// its error.
	Start     func(ctx context.Context) error
	Path      string // of the endpoint: /mcp
	Token     string // agent token, or ""
	UserAgent string
	Logger    *slog.Logger
}

// clientSession is the state for reopening the session of a legacy client after a restart of the daemon.
type clientSession struct {
	version    string              // agreed protocol version
	initialize *message            // the client's initialize, or nil if there is no session
	settings   map[string]*message // subscriptions and log level
}

// bridge is one run of the relay.
type bridge struct {
	Options
	out lineWriter
	wg  sync.WaitGroup // all goroutines except the reader

	closing chan struct{} // closed at the end of the input

	sendMu sync.Mutex // held while a message of the client, or the last line, is sent

	joinMu sync.Mutex // one connect or session opening at a time

	mu      sync.Mutex  // guards the following fields
	daemon  *daemonConn // the latest connection
	session clientSession
}

// Run relays messages until the input ends, the output fails, or ctx ends. After the end of the input, it waits for
// open replies. A goroutine may remain in In.Read if In cannot be closed, and in Out.Write while the client does not
// read.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{Options: o, closing: make(chan struct{})}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	b.out = lineWriter{to: o.Out, failed: cancel}
	ended := make(chan error, 1)
	go func() {
		err := b.readInput(ctx)
		close(b.closing)
		defer time.AfterFunc(drainTime, cancel).Stop()
		b.sendEndLineIfInputEnded()
		b.wg.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(exitTime):
		return nil
	}
}

// readInput handles lines until the input ends.
func (b *bridge) readInput(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- b.readLines(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if c, ok := b.In.(io.Closer); ok {
		_ = c.Close() // unblocks the reader if possible
	}
	b.sendMu.Lock() // wait for the current line
	defer b.sendMu.Unlock()
	return nil
}

func (b *bridge) readLines(ctx context.Context) error {
	lines := wirejson.NewLineReader(b.In, maxLine)
	for {
		line, err := lines.Next()
		tooLong := errors.Is(err, wirejson.ErrTooLong)
		switch {
		case errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil:
			return nil
		case err != nil && !tooLong:
			return err
		case !b.forwardLine(ctx, line, tooLong):
			return nil
		}
	}
}

// forwardLine sends one line to the daemon, and reports whether to continue reading.
func (b *bridge) forwardLine(ctx context.Context, line []byte, tooLong bool) bool {
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	line = bytes.TrimSpace(line)
	switch {
	case tooLong:
		b.out.writeLine(wirejson.AppendError(nil, nil, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A message is larger than 16 MiB (16777216 bytes), the most that is read. Send less, for example a path instead of the data itself."}))
		return true
	case len(line) == 0:
		return true
	}
	line = append(append(make([]byte, 0, len(line)+1), line...), '\n')
	if line[0] == '[' {
		b.sendRequest(ctx, &pendingRequest{message: &message{line: line}})
		return true
	}
	m, err := wirejson.ParseServerMessage(line)
	msg := &message{Message: m, line: line, modern: isModernRequest(m.Params)}
	switch {
	case err != nil:
		b.out.writeLine(wirejson.AppendError(nil, nil, toRPCError(err)))
	case m.Method == mcp.Initialize && m.IsRequest() && !msg.modern:
		b.openSession(ctx, msg) // later messages need the session
	case m.IsRequest():
		b.sendRequest(ctx, &pendingRequest{message: msg})
	case m.Method == mcp.Cancelled:
		if d := b.connectionIfOpen(); d != nil {
			d.forwardCancel(string(wirejson.Find(m.Params, "requestId")), line)
		}
	default:
		b.forwardMessage(ctx, msg)
	}
	return true
}

// isModernRequest reports whether the params contain their protocol version, as in modern requests.
func isModernRequest(params json.RawMessage) bool {
	_, ok := wirejson.String(wirejson.Find(wirejson.Find(params, "_meta"), mcp.MetaVersion))
	return ok
}

// connectionIfOpen returns the open connection, or nil.
func (b *bridge) connectionIfOpen() *daemonConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon == nil || b.daemon.retired.Load() {
		return nil
	}
	return b.daemon
}

// sendRequest sends a request or a batch, or answers it with an error.
func (b *bridge) sendRequest(ctx context.Context, f *pendingRequest) {
	d, err := b.connectWithSession(ctx, true)
	if err == nil {
		err = d.sendRequest(f)
	}
	if err != nil && ctx.Err() == nil {
		b.out.writeLine(f.errorReply(err))
	}
}

// forwardMessage sends a notification, or the client's answer to a question of the server.
func (b *bridge) forwardMessage(ctx context.Context, msg *message) {
	if !b.hasSession() {
		return // the modern protocol has no such messages
	}
	d, err := b.connectWithSession(ctx, true)
	if err != nil {
		b.Logger.Warn("a message could not be forwarded", "method", msg.Method, "error", err)
		return
	}
	d.sendLine(msg.line)
}

// connectDaemon returns the connection to the daemon. If start is set, it starts a daemon if none runs.
// b.joinMu is held.
func (b *bridge) connectDaemon(ctx context.Context, start bool) (*daemonConn, error) {
	if d := b.connectionIfOpen(); d != nil {
		return d, nil
	}
	d, err := dialDaemon(ctx, b.Dial, daemonTarget{b.Path, b.Token, b.UserAgent})
	if start && isDialError(err) && ctx.Err() == nil {
		if err = b.Start(ctx); err == nil {
			d, err = dialDaemon(ctx, b.Dial, daemonTarget{b.Path, b.Token, b.UserAgent})
		}
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.daemon = d
	b.mu.Unlock()
	b.wg.Go(func() { b.relayFromDaemon(ctx, d) })
	return d, nil
}

// relayFromDaemon reads the daemon's messages until the connection ends.
func (b *bridge) relayFromDaemon(ctx context.Context, d *daemonConn) {
	stop := context.AfterFunc(ctx, func() { _ = d.nc.Close() })
	defer stop()
	for lines := wirejson.NewLineReader(d.from, maxMessage); ; {
		line, err := lines.Next()
		if err != nil {
			b.failOpenRequests(ctx, d)
			return
		}
		said, text := splitControlWord(line)
		switch {
		case len(line) == 0:
		case said == "":
			b.relayMessage(ctx, d, text, false)
		case said == mcp.LineSessionEnded:
			d.retired.Store(true)
			b.relayMessage(ctx, d, text, true)
		case d.takeRequest(said) != nil && len(text) > 0: // reply to a batch
			b.out.writeLine(text)
		}
	}
}

// splitControlWord returns the control word of a line of the daemon, and the message after it.
func splitControlWord(line []byte) (said string, text []byte) {
	begin := bytes.IndexAny(line, "{[")
	if begin < 0 {
		begin = len(line)
	}
	return string(bytes.TrimSpace(line[:begin])), line[begin:]
}

// relayMessage writes a message to the client, unless it is an unexpected reply. It resends a request
// once if its session had ended before it was executed.
func (b *bridge) relayMessage(ctx context.Context, d *daemonConn, line []byte, over bool) {
	id, failed, isAnswer := parseReplyID(line)
	if !isAnswer || id == "" {
		b.out.writeLine(line)
		return
	}
	switch f := d.takeRequest(id); {
	case f == nil:
	case f.own != nil:
		f.own <- bytes.Clone(line)
	case over && !f.resent:
		f.resent = true
		b.wg.Go(func() {
			b.sendMu.Lock()
			b.sendRequest(ctx, f)
			b.sendMu.Unlock()
			b.sendEndLineIfInputEnded()
		})
	default:
		if !failed {
			b.rememberSetting(f.message)
		}
		b.out.writeLine(line)
	}
}

// failOpenRequests answers the open requests with an error when the connection ends.
func (b *bridge) failOpenRequests(ctx context.Context, d *daemonConn) {
	d.retired.Store(true)
	_ = d.nc.Close() // the connection is already lost
	close(d.closed)
	d.mu.Lock()
	flights := d.requests
	d.requests = nil // accepts no new requests
	d.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for _, f := range flights {
		if f.own == nil && !f.cancelled {
			b.out.writeLine(f.errorReply(errCutOff))
		}
	}
	if b.hasSession() {
		b.wg.Go(func() { b.restoreSession(ctx) })
	}
}

// sendEndLineIfInputEnded tells the daemon, after the end of the input, that no more messages follow. Resent requests use
// another connection.
func (b *bridge) sendEndLineIfInputEnded() {
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	select {
	case <-b.closing:
		if d := b.connectionIfOpen(); d != nil {
			d.retired.Store(true)
			d.sendLine([]byte(mcp.LineEnd + "\n"))
		}
	default:
	}
}

// lineWriter writes messages, one per line.
type lineWriter struct {
	mu     sync.Mutex // orders the lines
	to     io.Writer
	failed context.CancelFunc
	buf    []byte
}

// keptLine is the size up to which a message and its line end are written together, in bytes.
const keptLine = 64 << 10

// writeLine writes a message, which must not contain a line break, and a line end.
func (w *lineWriter) writeLine(message []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(message) > keptLine {
		if _, err := w.to.Write(message); err != nil {
			w.failed() // the client has disconnected
		}
		message = nil
	}
	w.buf = append(append(w.buf[:0], message...), '\n')
	if _, err := w.to.Write(w.buf); err != nil {
		w.failed()
	}
}
