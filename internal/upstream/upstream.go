// Package upstream keeps one supervised connection to each MCP server: it
// starts, initialises, lists, watches, calls, reconnects and stops it.
//
// It guarantees that a server never delays or breaks another one, that the
// params, results and definitions of a server pass as the bytes they are, that
// notifications are handed on in order and before the response they precede,
// that everything a server sends is bounded, and that no process outlives its
// Server. It does not decide what may be called and it writes no activity
// record: its Call has one caller, the gateway.
package upstream

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/tool"
)

// Transport is how a server is reached.
type Transport string

// The transports. Legacy SSE and 2026-07-28 upstreams have their place here
// and come with the protocol work.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

// Spec is everything that decides how a server is launched and reached, with
// references to secrets resolved. Two equal Specs need no restart.
type Spec struct {
	Name           string
	Transport      Transport
	Command        string
	Args           []string
	Env            map[string]string // added to the allow-listed environment
	Dir            string
	URL            string
	Headers        map[string]string
	Secrets        []string      // values in the above that must not be said: they are masked in errors and logs of ours
	ConnectTimeout time.Duration // start to initialised and listed; 0 = 30 s
}

// Equal says whether s and o launch the same server the same way.
func (s Spec) Equal(o Spec) bool {
	return s.Name == o.Name && s.Transport == o.Transport && s.Command == o.Command &&
		slices.Equal(s.Args, o.Args) && maps.Equal(s.Env, o.Env) && s.Dir == o.Dir &&
		s.URL == o.URL && maps.Equal(s.Headers, o.Headers) && slices.Equal(s.Secrets, o.Secrets) && s.ConnectTimeout == o.ConnectTimeout
}

// Phase is where a server is in its life.
type Phase string

// The phases.
const (
	Stopped    Phase = "stopped"    // not wanted, or not started yet
	Connecting Phase = "connecting" // starting, initialising, listing
	Ready      Phase = "ready"      // initialised and listed
	Waiting    Phase = "waiting"    // failed; the next try is at State.RetryAt
)

// State is a snapshot of one server's connection.
type State struct {
	Name            string
	Phase           Phase
	Since           time.Time
	LastError       string // what ended the last connection or try; "" when none did
	RetryAt         time.Time
	Restarts        int // connections made after the first one
	PID             int // 0 when there is no process
	ProtocolVersion string
	ServerInfo      json.RawMessage // {"name","version",…} as sent
	Instructions    string
	Capabilities    json.RawMessage
}

// Call is one tools/call.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object, forwarded as these bytes; nil leaves the member out
	// Listed is the definition that the caller has judged, as the bytes that
	// the server listed. The call is sent only on a connection whose own list
	// has these very bytes for the tool. Nil when that does not matter.
	Listed json.RawMessage
	// Meta is the caller's _meta object to pass on, or nil. A progressToken in
	// it is replaced by one that is unique on the connection, and put back in
	// the notifications that Notify gets.
	Meta json.RawMessage
	// Notify gets the notifications that belong to this call (progress, and
	// log messages where the server can be told to belong to it), in order and
	// all of them before Call returns. Nil when nobody wants them.
	Notify func(method string, params json.RawMessage)
}

// Reply is the server's answer: its result, as its bytes, or its JSON-RPC error.
type Reply struct {
	Result json.RawMessage
	Error  *jsonrpc.Error
}

// Observer is told what changed. Its methods are called one after the other
// for one server, from that server's own goroutine, and must not block.
type Observer interface {
	StateChanged(State)
	// ToolsListed gets the complete list after each connect and list_changed.
	ToolsListed(server string, tools []tool.Definition)
}
