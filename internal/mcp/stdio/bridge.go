// Package stdio is `mcpproxy stdio`: it carries MCP between stdin and stdout and a
// surface of the daemon, for clients that only start commands. The daemon reads
// the same lines as the client writes (docs/adr/0050-lines-over-the-socket.md), so
// what is left is what only the client's side can do: have a daemon started
// (cli/stdio.go does), and when it was started anew, open the client's session
// again and repeat its subscriptions and log level (session.go). A request in flight
// at that moment gets an error, and is not repeated.
//
// It guarantees that what it writes is one message a line and nothing else, that
// the messages of a client reach the daemon in their order, that a request which
// is not cancelled gets exactly one answer, whatever becomes of the daemon, and
// that everything it holds is bounded. It proves no right but that of an
// agent token: over the socket of the command line, too, who speaks MCP is an agent. It reads no more of a message
// than whose it is, and decides nothing.
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

// maxLine bounds a line of the client, in bytes; what is above the daemon's own
// bound, the daemon refuses.
const maxLine = 16 << 20

// maxMessage bounds a line of the daemon, in bytes. Its answers are smaller.
const maxMessage = 64 << 20

const (
	// drainTime is for answers that are under way when the input ends.
	drainTime = 10 * time.Second
	// lastTime is for a client that does not read when ctx has ended.
	lastTime = time.Second
)

// Options are the two sides of a bridge.
type Options struct {
	In  io.Reader // the client's messages, one a line
	Out io.Writer // the messages to the client, one a line
	// Dial connects to the daemon that runs.
	Dial func(ctx context.Context) (net.Conn, error)
	// Start makes sure that a daemon runs. It is asked when a message of the
	// client finds none; its error is what the client is told.
	Start     func(ctx context.Context) error
	Path      string // of the surface: /mcp
	Token     string // an agent token to be known by; "" for none
	UserAgent string
	Logger    *slog.Logger
}

// session is what the session of a legacy client is opened with again, at a
// daemon that does not know it any more.
type session struct {
	version string              // what was agreed on
	hello   *message            // the initialize that opened it; nil: there is none
	wishes  map[string]*message // what the client has asked of it
}

// bridge is one run.
type bridge struct {
	Options
	out writer
	wg  sync.WaitGroup // of all goroutines but the one that reads

	closing chan struct{} // closed when the input has ended

	taking sync.Mutex // held while a message of the client is sent, or the last line

	joining sync.Mutex // one opening of a connection, or of a session, at a time

	mu      sync.Mutex // guards what follows
	daemon  *daemon    // that was connected to last
	session session
}

// Run carries messages until the input ends (and then what was asked is
// answered first), the output cannot be written, or ctx ends. A goroutine may
// be left in In.Read when In cannot be closed, and in Out.Write while nobody
// reads what is written.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{Options: o, closing: make(chan struct{})}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	b.out = writer{to: o.Out, failed: cancel}
	ended := make(chan error, 1)
	go func() {
		err := b.read(ctx)
		close(b.closing)
		defer time.AfterFunc(drainTime, cancel).Stop()
		b.last()
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
	case <-time.After(lastTime):
		return nil
	}
}

// read deals with line by line until the input ends.
func (b *bridge) read(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- b.readLines(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if c, ok := b.In.(io.Closer); ok {
		_ = c.Close() // lets the reader go, where that is possible
	}
	b.taking.Lock() // what is being dealt with
	defer b.taking.Unlock()
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
		case !b.take(ctx, line, tooLong):
			return nil
		}
	}
}

// take sends one line on its way, and reports whether there may be another one.
func (b *bridge) take(ctx context.Context, line []byte, tooLong bool) bool {
	b.taking.Lock()
	defer b.taking.Unlock()
	if ctx.Err() != nil {
		return false
	}
	line = bytes.TrimSpace(line)
	switch {
	case tooLong:
		b.out.write(wirejson.AppendError(nil, nil, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A message is larger than 16 MiB (16777216 bytes), the most that is read. Send less, for example a path instead of the data itself."}))
		return true
	case len(line) == 0:
		return true
	}
	line = append(append(make([]byte, 0, len(line)+1), line...), '\n')
	if line[0] == '[' {
		b.launch(ctx, &flight{message: &message{line: line}})
		return true
	}
	m, err := wirejson.Parse(line)
	msg := &message{Message: m, line: line, modern: isModern(m.Params)}
	switch {
	case err != nil:
		b.out.write(wirejson.AppendError(nil, nil, explain(err)))
	case m.Method == mcp.Initialize && m.IsRequest() && !msg.modern:
		b.initialize(ctx, msg) // what follows needs the session
	case m.IsRequest():
		b.launch(ctx, &flight{message: msg})
	case m.Method == mcp.Cancelled:
		if d := b.current(); d != nil {
			d.cancel(string(wirejson.Find(m.Params, "requestId")), line)
		}
	default:
		b.tell(ctx, msg)
	}
	return true
}

// isModern reports whether the params say their revision, as text: requests of
// the modern era do.
func isModern(params json.RawMessage) bool {
	_, ok := wirejson.String(wirejson.Find(wirejson.Find(params, "_meta"), mcp.MetaVersion))
	return ok
}

// current returns the connection that there is, nil if there is none.
func (b *bridge) current() *daemon {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon == nil || b.daemon.left.Load() {
		return nil
	}
	return b.daemon
}

// launch has a request or a batch sent, or answers why it cannot be.
func (b *bridge) launch(ctx context.Context, f *flight) {
	d, err := b.join(ctx, true)
	if err == nil {
		err = d.launch(f)
	}
	if err != nil && ctx.Err() == nil {
		b.out.write(f.refusal(err))
	}
}

// tell hands on a notification, or the answer to a request of the server.
func (b *bridge) tell(ctx context.Context, msg *message) {
	if !b.hasSession() {
		return // the modern era has none
	}
	d, err := b.join(ctx, true)
	if err != nil {
		b.Logger.Warn("a message could not be handed on", "method", msg.Method, "error", err)
		return
	}
	d.send(msg.line)
}

// connect returns the connection with the daemon. Where no daemon is there, one
// is started, if it may. b.joining is held.
func (b *bridge) connect(ctx context.Context, start bool) (*daemon, error) {
	if d := b.current(); d != nil {
		return d, nil
	}
	d, err := dial(ctx, b.Dial, target{b.Path, b.Token, b.UserAgent})
	if start && notThere(err) && ctx.Err() == nil {
		if err = b.Start(ctx); err == nil {
			d, err = dial(ctx, b.Dial, target{b.Path, b.Token, b.UserAgent})
		}
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.daemon = d
	b.mu.Unlock()
	b.wg.Go(func() { b.hear(ctx, d) })
	return d, nil
}

// hear reads what the daemon says until nothing comes any more.
func (b *bridge) hear(ctx context.Context, d *daemon) {
	stop := context.AfterFunc(ctx, func() { _ = d.nc.Close() })
	defer stop()
	for lines := wirejson.NewLineReader(d.from, maxMessage); ; {
		line, err := lines.Next()
		if err != nil {
			b.lost(ctx, d)
			return
		}
		said, text := split(line)
		switch {
		case len(line) == 0:
		case said == "":
			b.heard(ctx, d, text, false)
		case said == mcp.LineOver:
			d.left.Store(true)
			b.heard(ctx, d, text, true)
		case d.land(said) != nil && len(text) > 0: // a batch is answered
			b.out.write(text)
		}
	}
}

// split returns what the daemon says itself in a line, and the message after it.
func split(line []byte) (said string, text []byte) {
	begin := bytes.IndexAny(line, "{[")
	if begin < 0 {
		begin = len(line)
	}
	return string(bytes.TrimSpace(line[:begin])), line[begin:]
}

// heard passes a message on, unless it answers what nobody waits for. A request
// that was not acted on, since its session was over, is sent once more.
func (b *bridge) heard(ctx context.Context, d *daemon, line []byte, over bool) {
	id, failed, isAnswer := answered(line)
	if !isAnswer || id == "" {
		b.out.write(line)
		return
	}
	switch f := d.land(id); {
	case f == nil:
	case f.own != nil:
		f.own <- bytes.Clone(line)
	case over && !f.again:
		f.again = true
		b.wg.Go(func() {
			b.taking.Lock()
			b.launch(ctx, f)
			b.taking.Unlock()
			b.last()
		})
	default:
		if !failed {
			b.remember(f.message)
		}
		b.out.write(line)
	}
}

// lost answers what has no answer when nothing comes any more.
func (b *bridge) lost(ctx context.Context, d *daemon) {
	d.left.Store(true)
	_ = d.nc.Close() // nobody is left to tell
	close(d.gone)
	d.mu.Lock()
	flights := d.flights
	d.flights = nil // no more
	d.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for _, f := range flights {
		if f.own == nil && !f.cancelled {
			b.out.write(f.refusal(errCutOff))
		}
	}
	if b.hasSession() {
		b.wg.Go(func() { b.comeBack(ctx) })
	}
}

// last tells the daemon that nothing more comes, once that is so. What has to be
// asked again after all is asked on another connection.
func (b *bridge) last() {
	b.taking.Lock()
	defer b.taking.Unlock()
	select {
	case <-b.closing:
		if d := b.current(); d != nil {
			d.left.Store(true)
			d.send([]byte(mcp.LineEnd + "\n"))
		}
	default:
	}
}

// writer writes messages, one a line.
type writer struct {
	mu     sync.Mutex // orders the lines
	to     io.Writer
	failed context.CancelFunc
	buf    []byte
}

// keptLine is the size up to which a message is written in one piece with its
// end, in bytes.
const keptLine = 64 << 10

// write writes a message, which has no line break, and its end.
func (w *writer) write(message []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(message) > keptLine {
		if _, err := w.to.Write(message); err != nil {
			w.failed() // the client has gone
		}
		message = nil
	}
	w.buf = append(append(w.buf[:0], message...), '\n')
	if _, err := w.to.Write(w.buf); err != nil {
		w.failed()
	}
}
