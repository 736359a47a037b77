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

// maxInFlight limits the open requests.
const maxInFlight = 1024

// upgradeTime limits the upgrade to the line protocol.
const upgradeTime = 10 * time.Second

// message is one message of the client, or a batch. A batch has only the line.
type message struct {
	wirejson.Message
	line   []byte // including its line end
	modern bool   // it needs no session
}

// pendingRequest is a request without a reply yet.
type pendingRequest struct {
	*message
	own       chan []byte // receives the reply to a request of the bridge itself, cap 1; otherwise nil
	resent    bool        // already resent in a new session
	cancelled bool        // the client cancelled it and expects no reply; daemonConn.mu guards this
}

// daemonConn is a connection to the daemon after the upgrade.
type daemonConn struct {
	nc      net.Conn
	from    io.Reader
	closed  chan struct{} // closed when the connection ends
	retired atomic.Bool   // accepts no new requests
	open    bool          // the client's session is open; bridge.joinMu guards this

	writeMu sync.Mutex // orders the lines

	mu       sync.Mutex // guards the following fields
	requests map[string]*pendingRequest
	batches  int // number of sent batches
}

var (
	errCutOff         = errors.New("the answer broke off")
	errNoLineProtocol = problem.New(problem.DaemonNotRunning, "The running MCPProxy has another version than this command, and they are not compatible.",
		"Stop it, and restart the client's connection.")
	errBusy = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "1024 requests are open, the maximum. Wait until some of them are answered."}
	errDuplicateID = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "Another request with this id has no answer yet. Give each request its own id."}
)

// daemonTarget is an endpoint of the daemon and the credentials for it.
type daemonTarget struct{ path, token, userAgent string }

// dialDaemon connects to the daemon and upgrades the connection.
func dialDaemon(ctx context.Context, to func(context.Context) (net.Conn, error), at daemonTarget) (*daemonConn, error) {
	nc, err := to(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	from, err := upgradeConn(nc, at)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return &daemonConn{nc: nc, from: from, closed: make(chan struct{}), requests: map[string]*pendingRequest{}}, nil
}

// upgradeConn upgrades the connection to the line protocol and returns its reader.
func upgradeConn(nc net.Conn, at daemonTarget) (io.Reader, error) {
	_ = nc.SetDeadline(time.Now().Add(upgradeTime)) // if it fails, the next step fails, too
	proof := ""
	if at.token != "" {
		proof = "Authorization: Bearer " + at.token + "\r\n"
	}
	_, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: %s\r\n%sConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", at.path, at.userAgent, proof, mcp.LineProtocol)
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
	case http.StatusMethodNotAllowed: // an older daemon without the line protocol
		return nil, errNoLineProtocol
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the part that arrived
	if m, err := wirejson.ParseServerMessage(body); err == nil && m.Error != nil {
		return nil, m.Error
	}
	return nil, fmt.Errorf("HTTP status %d: %s", resp.StatusCode, bytes.TrimSpace(body))
}

// sendLine sends a line. If it fails, the connection ends, and failOpenRequests answers the open requests.
func (d *daemonConn) sendLine(line []byte) {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if _, err := d.nc.Write(line); err != nil {
		_ = d.nc.Close() // the daemon must not read a partial line
	}
}

// sendRequest sends a request or a batch. Replies may arrive in any order.
func (d *daemonConn) sendRequest(f *pendingRequest) error {
	if err := d.registerRequest(f); err != nil {
		return err
	}
	d.sendLine(f.line)
	return nil
}

// registerRequest registers a request before it is sent.
func (d *daemonConn) registerRequest(f *pendingRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(f.ID)
	if key == "" {
		key = fmt.Sprint(mcp.LineBatch, " ", d.batches+1)
	}
	switch {
	case d.requests == nil:
		return errCutOff
	case len(d.requests) >= maxInFlight && f.own == nil:
		return errBusy
	case d.requests[key] != nil:
		return errDuplicateID
	}
	d.requests[key] = f
	if f.ID == nil {
		d.batches++
	}
	return nil
}

// takeRequest removes and returns the request for a reply, or nil if no request waits for it.
func (d *daemonConn) takeRequest(key string) *pendingRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.requests[key]
	delete(d.requests, key)
	if f == nil || f.cancelled {
		return nil
	}
	return f
}

// roundTrip sends a request of the bridge itself and returns the reply.
func (d *daemonConn) roundTrip(ctx context.Context, msg *message) ([]byte, error) {
	f := &pendingRequest{message: msg, own: make(chan []byte, 1)}
	if err := d.sendRequest(f); err != nil {
		return nil, err
	}
	select {
	case answer := <-f.own:
		return answer, nil
	case <-d.closed:
		return nil, errCutOff
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forwardCancel forwards a cancellation of the client.
func (d *daemonConn) forwardCancel(id string, line []byte) {
	d.mu.Lock()
	if f := d.requests[id]; f != nil {
		f.cancelled = true
	}
	d.mu.Unlock()
	d.sendLine(line)
}

// parseReplyID returns the request ID of a reply. ok is false if the line is not a reply. failed reports an error
// reply. The ID is "" if it is unknown.
func parseReplyID(line []byte) (id string, failed, ok bool) {
	c := wirejson.Cursor{Text: line, Depth: wirejson.RelayDepth}
	for end := c.Enter('{'); c.More(end); {
		switch name := string(c.ReadName()); name {
		case "result", "error":
			return id, name == "error", true
		case "id":
			id = string(c.ReadValue())
		case "method":
			return "", false, false
		default:
			c.ReadValue()
		}
	}
	return "", false, false
}

// isDialError reports whether dialing failed, so that nothing was sent.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// toRPCError returns the error for the client.
func toRPCError(err error) *wirejson.RPCError {
	if e, ok := errors.AsType[*wirejson.RPCError](err); ok {
		return e
	}
	e := &wirejson.RPCError{Code: wirejson.CodeInternal}
	p, ok := errors.AsType[*problem.Problem](err)
	switch {
	case ok:
		e.Message = strings.TrimSpace(p.Message + " " + p.Hint)
	case isDialError(err):
		e.Message = "MCPProxy does not run and could not be started: " + err.Error()
	default:
		e.Message = "MCPProxy gave no answer: " + err.Error() + ". The request may have been carried out: check before you try again."
	}
	return e
}

// errorReply returns the error reply to a request, or to each request of a batch.
func (m *message) errorReply(err error) []byte {
	e := toRPCError(err)
	if m.ID != nil {
		return wirejson.AppendError(nil, m.ID, e)
	}
	var out []byte
	_ = wirejson.EachElement(m.line, func(element []byte) error { // invalid text gets a single reply
		if m, err := wirejson.ParseServerMessage(element); err == nil && m.IsRequest() {
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
