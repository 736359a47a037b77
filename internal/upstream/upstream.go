// Package upstream keeps one supervised connection to each MCP server: it
// starts, initialises, lists, watches, calls, reconnects and stops it.
//
// It guarantees that a server never delays or breaks another one, that the
// params, results and definitions of a server pass as the bytes they are, that
// notifications are handed on in order and before the response they precede,
// that everything a server sends is bounded, and that no process outlives its
// Server. It does not decide what may be called and it writes no activity
// record: a call of a tool needs the proof that it was decided about, and
// Server.Try, which every call goes through, sends none without it.
//
// What clients have open with a server is adapt's: upstream tells it what happens to
// the connection through the interface Clients, and it sends with Try or opens a
// link of its own.
//
// Where things are: Set has the servers (set.go), a Server (server.go) its parts.
// Its life is the goroutine of run (supervise.go), which connects, serves and, when
// a connection is lost, tries again after a growing pause; who waits for the connection
// and whether a restart was asked for is its presence (presence.go, restart.go).
// A link is made by the dialer (dialer.go), at the server's turn to start
// (starting.go), and becomes a Connection by the handshake of either era
// (handshake.go, greeting.go). What it lists, and who waits for that, is in
// listing.go, pages.go and watch.go; when it may rest, in usage.go. Each request
// goes through Try (try.go); problems.go has what callers are told when it fails.
package upstream

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
)

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse" // of MCP 2024-11-05
)

// Spec is everything that decides how a server is launched and reached, with
// references to secrets resolved, and when it runs. Two equal Specs need no
// restart.
type Spec struct {
	Name           string
	Transport      Transport
	Command        string
	Args           []string
	Env            map[string]string // added to the allow-listed environment
	Dir            string
	URL            string
	Headers        map[string]string
	AllowPrivate   bool          // the name in URL may lead into private networks
	Secrets        []string      // values in the above that must not be said: they are masked in errors and logs of ours
	ConnectTimeout time.Duration // from when a started server could answer to initialised and listed; 0 = 30 s
	// Review says that it runs for a person to look at it. When that begins,
	// what clients have open with it ends; when it ends nothing does.
	Review bool
	// IdleTimeout is after which time without use a server over stdio is stopped,
	// until it is used again; 0 = never.
	IdleTimeout time.Duration
	Lazy        bool // not started before its first use
	// TrySSE has a server that refuses streamable HTTP tried over SSE.
	TrySSE bool
	// Shared has the sessions of clients stand on the one connection that
	// MCPProxy has, so that the server runs once. When that changes, what clients
	// have open with it ends; the server itself runs on.
	Shared bool
	// Lacks says why it cannot be started or contacted at all, such as a secret
	// that nobody has set; "" when it can.
	Lacks         string
	LacksVariable bool // what it lacks is an environment variable, not only a secret
}

// Equal reports whether s and o launch the same server the same way.
func (s Spec) Equal(o Spec) bool {
	return s.Name == o.Name && s.Transport == o.Transport && s.Command == o.Command &&
		slices.Equal(s.Args, o.Args) && maps.Equal(s.Env, o.Env) && s.Dir == o.Dir &&
		s.URL == o.URL && s.TrySSE == o.TrySSE && s.AllowPrivate == o.AllowPrivate && maps.Equal(s.Headers, o.Headers) && slices.Equal(s.Secrets, o.Secrets) && s.ConnectTimeout == o.ConnectTimeout && s.Lacks == o.Lacks && s.LacksVariable == o.LacksVariable
}

// Proves reports whether the launch itself says who asks.
func (s *Spec) Proves() bool {
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	u, err := url.Parse(s.URL)
	return err == nil && u.User != nil
}

const defaultConnectTime = 30 * time.Second

// ConnectTime is how long a connection may take to be made.
func (s *Spec) ConnectTime() time.Duration {
	if s.ConnectTimeout > 0 {
		return s.ConnectTimeout
	}
	return defaultConnectTime
}

// runner returns what fetches the server before it starts.
func (s *Spec) runner() process.Runner {
	if s.Transport != Stdio {
		return process.Runner{}
	}
	return process.RunnerOf(s.Command, s.Args)
}

// Phase is where a server is in its life.
type Phase string

// The phases.
const (
	Stopped    Phase = "stopped"    // not wanted, or not started yet
	Connecting Phase = "connecting" // starting, initialising, listing
	Ready      Phase = "ready"      // initialised and listed
	Failed     Phase = "failed"     // the last try, or the connection; the next try is at State.RetryAt
	Idle       Phase = "idle"       // not running until it is used
)

// State is a snapshot of one server's connection.
type State struct {
	Name            string
	Phase           Phase
	Since           time.Time
	LastError       string            // what ended the last connection or try, for people; "" when none did
	Failure         transport.Failure // the same for both audiences
	FailedAt        time.Time         // when that was
	RetryAt         time.Time
	Restarts        int // connections made after the first one
	PID             int // 0 when there is no process
	ProtocolVersion string
	ServerInfo      json.RawMessage // {"name","version",…} as sent
	Instructions    string
	Capabilities    json.RawMessage
	// Offers is another number when what the server offers beside tools (prompts,
	// resources) may have become something else; 0 before it was ever connected.
	Offers uint64
}

// NeedsSecret reports whether it failed since a secret is missing: see Spec.Lacks.
func (s State) NeedsSecret() bool {
	return s.Phase == Failed && s.Failure.Code == transport.SecretNeeded
}

// NeedsVariable reports whether it failed since an environment variable is not set.
func (s State) NeedsVariable() bool {
	return s.Phase == Failed && s.Failure.Code == transport.VariableNeeded
}

// Observer is told what changed. Its methods are called one after the other
// for one server, from that server's own goroutine, and must not block.
type Observer interface {
	StateChanged(State)
	// ToolsListed gets the complete list after each connect and list_changed. In the
	// place of a definition that it has already it may put its own, equal one.
	ToolsListed(server string, tools []*tool.Definition)
}

// signal wakes who waits for c, whose capacity is 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain takes a signal back.
func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
