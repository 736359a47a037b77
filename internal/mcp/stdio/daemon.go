package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxInFlight is how many requests may have no answer.
const maxInFlight = 1024

// upgradeTime is how long the daemon may take to agree to lines.
const upgradeTime = 10 * time.Second

// message is one message of the client, or a batch, which is text alone.
type message struct {
	wirejson.Message
	line   []byte // with its end
	modern bool   // it says its revision: it needs no session
}

// flight is a request that has no answer yet.
type flight struct {
	*message
	own       chan []byte // gets the answer of a request of ours, cap 1; nil for one of the client
	again     bool        // it was sent once more, in a new session
	cancelled bool        // by the client: it wants no answer; daemon.mu guards this
}

// daemon is a connection with the daemon, which has become lines.
type daemon struct {
	nc   net.Conn
	from io.Reader
	gone chan struct{} // closed when nothing comes any more
	left atomic.Bool   // nothing is asked on it any more
	open bool          // the client's session; bridge.joining guards this

	writing sync.Mutex // orders the lines

	mu      sync.Mutex // guards what follows
	flights map[string]*flight
	batches int // that were sent
}

var (
	errCutOff = errors.New("the answer broke off")
	errOther  = problem.New(problem.DaemonNotRunning, "The MCPProxy that runs is of another version than this command, and they do not understand each other.",
		"Stop it, and start the client's connection anew.")
	errBusy = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "Too many requests wait for their answers (1024). Wait for some of them."}
	errTwice = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "Another request with this id has no answer yet. Give each request an id of its own."}
)

// target is a surface of the daemon, and how one comes to it.
type target struct{ path, token, userAgent string }

// dial connects to the daemon that runs.
func dial(ctx context.Context, to func(context.Context) (net.Conn, error), at target) (*daemon, error) {
	nc, err := to(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	from, err := upgrade(nc, at)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return &daemon{nc: nc, from: from, gone: make(chan struct{}), flights: map[string]*flight{}}, nil
}

// upgrade turns the connection into lines, and returns what they are read from.
func upgrade(nc net.Conn, at target) (io.Reader, error) {
	_ = nc.SetDeadline(time.Now().Add(upgradeTime)) // it fails where the next step does
	proof := ""
	if at.token != "" {
		proof = "Authorization: Bearer " + at.token + "\r\n"
	}
	_, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: %s\r\n%sConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", at.path, at.userAgent, proof, mcp.Lines)
	if err != nil {
		return nil, err
	}
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		early, _ := br.Peek(br.Buffered())
		return io.MultiReader(bytes.NewReader(early), nc), nc.SetDeadline(time.Time{})
	case http.StatusMethodNotAllowed: // one that knows no lines
		return nil, errOther
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what there is of it
	if m, err := wirejson.Parse(body); err == nil && m.Error != nil {
		return nil, m.Error
	}
	return nil, fmt.Errorf("HTTP status %d: %s", resp.StatusCode, bytes.TrimSpace(body))
}

// send sends a line with its end. When it cannot be sent, the connection ends,
// and what has no answer gets one by that.
func (d *daemon) send(line []byte) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if _, err := d.nc.Write(line); err != nil {
		_ = d.nc.Close() // a part of a line is none
	}
}

// launch sends a request or a batch. Its answer may come in any order.
func (d *daemon) launch(f *flight) error {
	if err := d.enter(f); err != nil {
		return err
	}
	d.send(f.line)
	return nil
}

// enter notes what is about to be sent.
func (d *daemon) enter(f *flight) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(f.ID)
	if key == "" {
		key = fmt.Sprint(mcp.LineBatch, " ", d.batches+1)
	}
	switch {
	case d.flights == nil:
		return errCutOff
	case len(d.flights) >= maxInFlight && f.own == nil:
		return errBusy
	case d.flights[key] != nil:
		return errTwice
	}
	d.flights[key] = f
	if f.ID == nil {
		d.batches++
	}
	return nil
}

// land takes out the request that an answer is of; nil when nobody waits for it.
func (d *daemon) land(key string) *flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.flights[key]
	delete(d.flights, key)
	if f == nil || f.cancelled {
		return nil
	}
	return f
}

// ask sends a request of our own, and returns its answer.
func (d *daemon) ask(ctx context.Context, msg *message) ([]byte, error) {
	f := &flight{message: msg, own: make(chan []byte, 1)}
	if err := d.launch(f); err != nil {
		return nil, err
	}
	select {
	case answer := <-f.own:
		return answer, nil
	case <-d.gone:
		return nil, errCutOff
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cancel passes on that the client wants no answer.
func (d *daemon) cancel(id string, line []byte) {
	d.mu.Lock()
	if f := d.flights[id]; f != nil {
		f.cancelled = true
	}
	d.mu.Unlock()
	d.send(line)
}

// answered returns the id of the request that a line of the daemon answers: ok
// reports whether it answers one, whose id may be unknown, and failed with what.
func answered(line []byte) (id string, failed, ok bool) {
	c := wirejson.Cursor{Text: line, Depth: wirejson.CarriedDepth}
	for end := c.Open('{'); c.More(end); {
		switch name := string(c.Name()); name {
		case "result", "error":
			return id, name == "error", true
		case "id":
			id = string(c.Value())
		case "method":
			return "", false, false
		default:
			c.Value()
		}
	}
	return "", false, false
}

// notThere reports whether nothing answers at all, so that nothing was sent.
func notThere(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// explain is why a request has no answer, for the client.
func explain(err error) *wirejson.RPCError {
	if e, ok := errors.AsType[*wirejson.RPCError](err); ok {
		return e
	}
	e := &wirejson.RPCError{Code: wirejson.CodeInternal}
	p, ok := errors.AsType[*problem.Problem](err)
	switch {
	case ok:
		e.Message = strings.TrimSpace(p.Message + " " + p.Hint)
	case notThere(err):
		e.Message = "MCPProxy does not run and could not be started: " + err.Error()
	default:
		e.Message = "MCPProxy gave no answer: " + err.Error() + ". The request may have been carried out: check before you try again."
	}
	return e
}

// refusal is what a request or each request of a batch is answered with.
func (m *message) refusal(err error) []byte {
	e := explain(err)
	if m.ID != nil {
		return wirejson.AppendError(nil, m.ID, e)
	}
	var out []byte
	_ = wirejson.Elements(m.line, func(element []byte) error { // what is no array is answered once
		if m, err := wirejson.Parse(element); err == nil && m.IsRequest() {
			out = wirejson.AppendError(append(out, ','), m.ID, e)
		}
		return nil
	})
	if out == nil {
		return wirejson.AppendError(nil, nil, e)
	}
	out[0] = '['
	return append(out, ']')
}
