package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// link is one connection to one server, from its start to its end. A link that
// is lost stays lost: the supervisor makes another one.
//
// The errors of roundTrip are of three kinds: ctx's own, an unsentError (the
// server has not acted on the request, it can be sent again on another link),
// and all others (nobody knows whether the server acted on it).
type link interface {
	roundTrip(ctx context.Context, r *request) (Reply, error)
	// relay passes a client's request on. Its errors are roundTrip's.
	relay(ctx context.Context, r *relayed) (Reply, error)
	notify(ctx context.Context, method string, params json.RawMessage) error
	// respond answers a request of the server.
	respond(ctx context.Context, msg []byte) error
	// overhear gives what the server says by itself to a client, until ctx or
	// the server ends it. opened is called when the server has agreed.
	overhear(ctx context.Context, say func(Event), opened func()) error
	// negotiated tells the revision that initialize settled.
	negotiated(version string)
	// attend begins to listen to what the server says by itself, after the
	// handshake, so that no change of what is listed then goes unheard.
	attend(ctx context.Context)
	// attended says whether what the server says by itself is heard now.
	attended() bool
	// lost is closed when the connection has ended; cause then says why.
	lost() <-chan struct{}
	cause() error
	// activity counts what the server has sent, inFlight the requests that it
	// has not answered.
	activity() uint64
	inFlight() int
	pid() int
	// tidy frees what has been unused for long.
	tidy(now time.Time)
	// stop ends the connection and waits for everything that belongs to it.
	// The end of hard cuts the grace short.
	stop(hard <-chan struct{})
}

// inbound is told what a server says by itself. Its methods return at once.
type inbound interface {
	toolsChanged()
	// offersChanged says the same of prompts and resources.
	offersChanged()
	// heard gets what is about no request, and says whether there is anybody
	// whom it may concern.
	heard(method string, params json.RawMessage) bool
	// missed says that the server may have said something that was lost.
	missed()
	// doubt says that the connection looks broken and should be tried.
	doubt()
	// remark gets what is worth a line in the server's log.
	remark(text string)
}

// changes tells up that something that it lists has changed, if method says so.
func changes(up inbound, method string) bool {
	switch method {
	case methodToolsChange:
		up.toolsChanged()
	case methodPrompts, methodResources:
		up.offersChanged()
	default:
		return false
	}
	return true
}

// request is one request on its way. msg is the complete message and is only
// read while roundTrip runs.
type request struct {
	id         uint64
	msg        []byte
	fields     []Field         // headers that go with it over HTTP
	token      json.RawMessage // the caller's progress token, which id stands for unless it is kept
	keepsToken bool            // the connection is the caller's own: its tokens mean nobody else
	notify     func(method string, params json.RawMessage)
	say        func(Event)     // of a client's request that is passed on; it gets everything
	owner      *sharedLink     // the client whose request it is, where clients share the connection
	head       func([]Field)   // of that client: gets the answer's header lines; nil when nobody wants them
	listens    json.RawMessage // the client's id of a subscription, which id stands for
	cancelable bool
}

// deliver hands what the server says to the caller of r, with its own token
// and id in it.
func (r *request) deliver(n note) {
	if n.method == methodProgress && r.token != nil && !r.keepsToken {
		n.params = jsonrpc.SetMember(n.params, "progressToken", r.token)
	}
	if r.listens != nil {
		n.params = setSubscription(n.params, r.listens)
	}
	if r.say != nil {
		r.say(Event{n.method, n.id, n.params})
		return
	}
	r.notify(n.method, n.params)
}

// wants says whether the caller of r is to get this notification.
func (r *request) wants(method string) bool {
	switch method {
	case methodProgress:
		return r.token != nil && (r.say != nil || r.notify != nil)
	case methodMessage:
		return r.listens == nil && (r.say != nil || r.notify != nil)
	}
	return r.say != nil
}

// The methods of MCP that a connection deals with.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodPing        = "ping"
	methodListTools   = "tools/list"
	methodCallTool    = "tools/call"
	methodCancelled   = "notifications/cancelled"
	methodProgress    = "notifications/progress"
	methodMessage     = "notifications/message"
	methodToolsChange = "notifications/tools/list_changed"
	methodPrompts     = "notifications/prompts/list_changed"
	methodResources   = "notifications/resources/list_changed"
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodSetLevel    = "logging/setLevel"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodUpdated     = "notifications/resources/updated"
	methodAgreed      = "notifications/subscriptions/acknowledged"
)

// Bounds on what waits inside a link.
const (
	maxNotes      = 1024     // notifications waiting for one caller
	maxNoteBytes  = 4 << 20  // and their size
	maxUnwritten  = 64 << 20 // bytes waiting for a server that does not read
	maxOffered    = 1 << 20  // and of answers to it
	maxPooledBuf  = 64 << 10
	maxErrorBody  = 64 << 10
	maxRemarkText = 2 << 10
)

// bufPool holds buffers for requests.
type bufPool struct{ pool sync.Pool }

func (p *bufPool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, 1<<10)
	return &b
}

func (p *bufPool) put(b *[]byte) {
	if cap(*b) <= maxPooledBuf {
		*b = (*b)[:0]
		p.pool.Put(b)
	}
}

// appendCall appends the tools/call request and gives the caller's own
// progress token, nil when there is none.
func appendCall(dst []byte, id uint64, c *Call) (msg []byte, token json.RawMessage) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, `,"method":"tools/call","params":{"name":`...)
	dst = appendString(dst, c.Tool)
	if c.Arguments != nil {
		dst = append(append(dst, `,"arguments":`...), c.Arguments...)
	}
	if c.Meta != nil {
		meta := c.Meta
		if token = strictjson.Find(meta, "progressToken"); token != nil {
			meta = jsonrpc.SetMember(meta, "progressToken", strconv.AppendUint(nil, id, 10))
		}
		dst = append(append(dst, `,"_meta":`...), meta...)
	}
	return append(dst, "}}"...), token
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // cannot be: a string can always be encoded
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// numericID reads an id that we made.
func numericID(raw json.RawMessage) (uint64, bool) {
	n, ok := digits(raw)
	return uint64(n), ok
}

// progressID gives the id that a progress notification is about.
func progressID(params json.RawMessage) (uint64, bool) {
	return numericID(strictjson.Find(params, "progressToken"))
}

// answerTo gives the answer to a request of a server: ping is answered, and
// nothing else is, since no such capability has been declared.
func answerTo(m *jsonrpc.Message) []byte {
	if m.Method == methodPing {
		return jsonrpc.AppendResult(nil, m.ID, json.RawMessage("{}"))
	}
	return jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{
		Code: jsonrpc.CodeMethodNotFound, Message: "this client has not declared that capability"})
}

// split gives the messages of a text: one, or those of a batch, which servers
// of 2025-03-26 may send. What is no UTF-8 in it, which JSON does not allow, is
// replaced, so that everything that is passed on can be read by everybody.
func split(data []byte, each func(jsonrpc.Message)) error {
	data = validUTF8(data)
	if len(data) == 0 || data[0] != '[' {
		m, err := jsonrpc.Parse(data)
		if err != nil {
			return err
		}
		each(m)
		return nil
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(data, &batch); err != nil {
		return err
	}
	var bad error
	for _, item := range batch {
		m, err := jsonrpc.Parse(item)
		if err != nil {
			bad = err
			continue
		}
		each(m)
	}
	return bad
}

// validUTF8 gives data itself when it is valid, which costs little to know.
func validUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// loss is the end of a link, told once.
type loss struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed
}

func newLoss() *loss { return &loss{done: make(chan struct{})} }

func (l *loss) fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

func (l *loss) lost() <-chan struct{} { return l.done }

func (l *loss) cause() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

var (
	errStopped     = errors.New("the connection was ended by MCPProxy")
	errRestart     = errors.New("it is being restarted")
	errSessionGone = errors.New("the server has ended the session")
	errNotReading  = errors.New("the server does not read its input")
	errNoAnswer    = errors.New("the answer ended before the response")
	errNoMessage   = errors.New("the answer is no JSON-RPC message")
	errWrongID     = errors.New("the server answered another request")
)

// lostError is what a request fails with that was under way when its link was
// lost.
type lostError struct{ cause error }

func (e *lostError) Error() string { return fmt.Sprintf("the connection was lost: %v", e.cause) }
func (e *lostError) Unwrap() error { return e.cause }
