// Package bridge carries MCP between a pair of streams (stdin and stdout) and a
// surface of the daemon, for clients that only start commands.
//
// It guarantees that what it writes is one message a line and nothing else,
// that both protocol eras pass (sessions with what the server says by itself,
// and requests that stand for themselves), that the messages of a client reach
// the daemon in an order that it can rely on, that a request which is not
// cancelled gets exactly one answer, whatever becomes of the daemon, and that
// everything it holds is bounded. It proves no right: over the socket of the
// command line, too, who speaks MCP is an agent. It reads no more of a message
// than where it goes, and decides nothing.
package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
)

// Bounds on what comes from either side.
const (
	maxLine     = 16 << 20 // of the client; what is above the daemon's own bound, the daemon refuses
	maxMessage  = 64 << 20 // of the daemon
	maxInFlight = 1024     // requests without an answer
)

// The times of the end.
const (
	drainTime   = 10 * time.Second // for answers that are under way when the input ends
	goodbyeTime = 2 * time.Second  // for the end of the session
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
	UserAgent string
	Logger    *slog.Logger
}

// bridge is one run.
type bridge struct {
	Options
	http *http.Client
	out  writer
	wg   sync.WaitGroup // of all goroutines but the one that reads

	mu      sync.Mutex // guards what follows
	flights map[string]*flight
	session *session // nil before initialize, and for modern clients
	closing bool     // no stream is opened any more
	// wishes are what the client has asked of its session.
	wishes map[string]*message
	// mirroring are the definitions of tools that want arguments in headers.
	mirroring map[string]json.RawMessage

	renewing sync.Mutex // one renewal of the session at a time
}

// flight is a request of the client that has no answer yet.
type flight struct {
	cancel    context.CancelFunc
	endless   bool // it is not waited for when the input ends
	cancelled bool // by the client: it wants no answer; bridge.mu guards it
}

// Run carries messages until the input ends (and then what was asked is
// answered first), the output cannot be written, or ctx ends. A goroutine may
// be left in In.Read when In cannot be closed.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{Options: o, flights: map[string]*flight{}, wishes: map[string]*message{}, mirroring: map[string]json.RawMessage{}}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	b.out = writer{to: o.Out, failed: cancel}
	b.http = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	err := b.read(ctx)
	b.drain(ctx)
	cancel()
	b.wg.Wait()
	if b.session != nil {
		b.goodbye(b.session)
	}
	b.http.CloseIdleConnections()
	return err
}

// line is one line of the input, or why there is none.
type line struct {
	data    []byte
	tooLong bool
}

// read takes line by line until the input ends. What must not be overtaken is
// done before the next line is looked at.
func (b *bridge) read(ctx context.Context) error {
	lines, failed := make(chan line), make(chan error, 1)
	go func() {
		defer close(lines)
		r := jsonrpc.NewLineReader(b.In, maxLine)
		for {
			_, err := r.Next()
			l := line{tooLong: errors.Is(err, jsonrpc.ErrTooLong)}
			if err != nil && !l.tooLong {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					failed <- err
				}
				return
			}
			if !l.tooLong {
				l.data = r.Keep()
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			if c, ok := b.In.(io.Closer); ok {
				_ = c.Close() // lets the reader go, where that is possible
			}
			return nil
		case l, ok := <-lines:
			if !ok {
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
			b.take(ctx, l)
		}
	}
}

// take sends one line on its way.
func (b *bridge) take(ctx context.Context, l line) {
	data := bytes.TrimSpace(l.data)
	switch {
	case l.tooLong:
		b.out.write(appendError(nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "A message is larger than 16 MiB (16777216 bytes), the most that is read. Send less, for example a path instead of the data itself."}))
		return
	case len(data) == 0:
		return
	case data[0] == '[':
		b.takeBatch(ctx, data)
		return
	}
	m, err := jsonrpc.Parse(data)
	if err != nil {
		b.out.write(appendError(nil, asRPC(err)))
		return
	}
	msg := message{Message: m, body: data, version: metaVersion(m.Params)}
	switch {
	case m.Method == mcp.Initialize && m.IsRequest() && msg.version == "":
		b.initialize(ctx, &msg) // what follows needs the session
	case m.IsRequest():
		b.launch(ctx, &msg)
	case m.Method == mcp.Cancelled:
		b.cancelled(ctx, &msg)
	default:
		b.tell(ctx, &msg)
	}
}

// launch begins a request. Its answer may come in any order.
func (b *bridge) launch(ctx context.Context, msg *message) {
	rctx, cancel := context.WithCancel(ctx)
	f := &flight{cancel: cancel, endless: msg.Method == mcp.Listen}
	id := string(msg.ID)
	b.mu.Lock()
	busy, twice := len(b.flights) >= maxInFlight, b.flights[id] != nil
	if !busy && !twice {
		b.flights[id] = f
	}
	b.mu.Unlock()
	switch {
	case busy:
		cancel()
		b.out.write(jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "Too many requests wait for their answers (1024). Wait for some of them."}))
		return
	case twice:
		cancel()
		b.out.write(jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "Another request with this id has no answer yet. Give each request an id of its own."}))
		return
	}
	b.wg.Go(func() {
		defer cancel()
		answer := b.request(rctx, msg)
		b.mu.Lock()
		delete(b.flights, id)
		unwanted := f.cancelled
		b.mu.Unlock()
		if answer != nil && !unwanted {
			b.out.write(answer)
		}
	})
}

// cancelled passes a cancellation on and ends the request here. The modern era
// cancels by ending the exchange, which that does.
func (b *bridge) cancelled(ctx context.Context, msg *message) {
	id := rawjson.Find(msg.Params, "requestId")
	b.mu.Lock()
	f := b.flights[string(id)]
	if f != nil {
		f.cancelled = true
	}
	b.mu.Unlock()
	b.tell(ctx, msg)
	if f != nil {
		f.cancel()
	}
}

// drain waits for the answers that are under way when the input has ended.
func (b *bridge) drain(ctx context.Context) {
	b.mu.Lock()
	b.closing = true
	for _, f := range b.flights {
		if f.endless {
			f.cancel()
		}
	}
	if b.session != nil && b.session.listening != nil {
		b.session.listening()
	}
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		b.wg.Wait()
		close(done)
	}()
	limit := time.NewTimer(drainTime)
	defer limit.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-limit.C:
	}
}

// writer writes messages, one a line.
type writer struct {
	mu     sync.Mutex // orders the lines
	to     io.Writer
	failed context.CancelFunc
}

// write writes a message and its end in one piece. A line break can stand
// between the parts of a JSON text only, where a space means the same.
func (w *writer) write(message []byte) {
	line := make([]byte, 0, len(message)+1)
	line = append(line, message...)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	line = append(line, '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.to.Write(line); err != nil {
		w.failed() // the client has gone
	}
}

// appendError is an error whose request is not known.
func appendError(dst []byte, e *jsonrpc.Error) []byte {
	return jsonrpc.AppendError(dst, json.RawMessage("null"), e)
}

func asRPC(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
}
