// Package upstream keeps one supervised connection to each MCP server: it starts,
// initializes, lists, pings, calls, reconnects and stops servers.
//
// Files:
//   - set.go: Set has the enabled servers; it starts, restarts and stops them when the
//     configuration changes.
//   - server.go, server_base.go: Server, and what its parts share.
//   - supervise.go: the goroutine of a server. It connects, pings, and, when the connection
//     is lost or the process has ended, sets the state to Failed and retries with backoff.
//   - availability.go: the state of a server, and callers that wait for its connection.
//   - restart.go: restarts for an agent, which wait until no call is in flight.
//   - start.go: takes the slot of a start in the start queue (process/start_watch.go watches slow starts).
//   - usage.go: counts requests in flight; an unused server is stopped as idle.
//   - dialer.go: opens a link; handshake.go, handshake_result.go: detect the legacy or
//     modern protocol; connection.go: Connection, the result.
//   - listing.go: lists the tools again after a change; pages.go reads paginated lists;
//     subscribe.go subscribes to changes of a modern server.
//   - send.go: Server.SendWhenReady, through which every request goes.
//   - needs.go: which clients need a session of their own with a server.
//   - call_failures.go: marks a server as Failed when each of its calls fails.
//   - problems.go: the errors that callers get; failures.go: the codes of State.Failure.
//
// Guarantees:
//   - A server never delays or breaks another one.
//   - Params, results and definitions stay the server's bytes. Notifications are
//     forwarded in order, and before the response that they precede.
//   - Everything a server sends is bounded. No process outlives its Server.
//   - A tool call without a permit is not sent.
//
// It does not decide what may be called and writes no activity record. Sessions of
// clients are in compat, which implements ServerClients; processes are in process, logins
// in oauth, secrets in secret.
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
	"mcpproxy/internal/upstream/sandbox"
)

// Transport is the transport by which a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse" // HTTP+SSE of MCP 2024-11-05
)

// Spec contains everything that determines how a server is launched and reached, with resolved secrets, and when it
// runs. Equal Specs need no restart.
type Spec struct {
	Name           string
	Transport      Transport
	Command        string
	Args           []string
	Env            map[string]string // added to the allowed environment
	Dir            string
	Sandbox        sandbox.Rules // with absolute paths
	Pin            string        // the pin that the sandbox compares; see sandbox.System.Wrap
	URL            string
	Headers        map[string]string
	AllowPrivate   bool          // the host in URL may resolve to private addresses
	Secrets        []string      // secret values in the fields above, masked in errors and logs
	ConnectTimeout time.Duration // time limit for the handshake and the list, without the start of the process; 0 means 30 s
	// Review means that the server runs only for a user's review. Clients' sessions end when a review begins, but not
	// when it ends.
	Review bool
	// IdleTimeout is the idle time after which a stdio server is stopped until its next use; 0 means never.
	IdleTimeout time.Duration
	Lazy        bool // starts at its first use
	// TrySSE falls back to SSE when the server rejects streamable HTTP.
	TrySSE bool
	// Shared makes client sessions share MCPProxy's own connection, so that the server runs once. When it changes,
	// client sessions end and the server keeps running.
	Shared bool
	// Auto makes clients share the connection, except those that need their own session; see needs.go. Needs are the
	// known needs of this launch. Shared is false then.
	Auto  bool
	Needs []KnownNeed
	// MissingReason is the reason why the server cannot be started or contacted, such as an unset secret; "" if there
	// is none.
	MissingReason   string
	MissingVariable bool // an environment variable is missing, not only a secret
}

// LaunchEquals reports whether s and o launch the same server in the same way.
func (s Spec) LaunchEquals(o Spec) bool {
	return s.Name == o.Name && s.Transport == o.Transport && s.Command == o.Command &&
		slices.Equal(s.Args, o.Args) && maps.Equal(s.Env, o.Env) && s.Dir == o.Dir && s.Sandbox.Equal(o.Sandbox) && s.Pin == o.Pin &&
		s.URL == o.URL && s.TrySSE == o.TrySSE && s.Auto == o.Auto && s.AllowPrivate == o.AllowPrivate && maps.Equal(s.Headers, o.Headers) && slices.Equal(s.Secrets, o.Secrets) && s.ConnectTimeout == o.ConnectTimeout && s.MissingReason == o.MissingReason && s.MissingVariable == o.MissingVariable
}

// HasCredentials reports whether the launch contains credentials.
func (s *Spec) HasCredentials() bool {
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	u, err := url.Parse(s.URL)
	return err == nil && u.User != nil
}

const defaultConnectTime = 30 * time.Second

// ConnectTimeLimit returns the time limit for a connection.
func (s *Spec) ConnectTimeLimit() time.Duration {
	if s.ConnectTimeout > 0 {
		return s.ConnectTimeout
	}
	return defaultConnectTime
}

// packageRunner returns the package manager that fetches the server.
func (s *Spec) packageRunner() process.PackageRunner {
	if s.Transport != Stdio {
		return process.PackageRunner{}
	}
	return process.DetectRunner(s.Command, s.Args)
}

// Phase is the phase of a server.
type Phase string

// The phases.
const (
	Stopped    Phase = "stopped"    // disabled, or not started yet
	Connecting Phase = "connecting" // starting, initializing, listing
	Ready      Phase = "ready"      // initialized and listed
	Failed     Phase = "failed"     // the last try or connection failed; the next try is at State.RetryAt
	Idle       Phase = "idle"       // stopped until its next use
)

// State is the state of one server's connection.
type State struct {
	Name            string
	Phase           Phase
	Since           time.Time
	LastError       string                  // error of the last connection or try, for users; "" if there is none
	Failure         transport.ServerFailure // its classification
	FailedAt        time.Time               // time of that error
	RetryAt         time.Time
	Restarts        int // connections after the first one
	PID             int // 0 if there is no process
	ProtocolVersion string
	ServerInfo      json.RawMessage // {"name","version",…} as sent
	Instructions    string
	Capabilities    json.RawMessage
	// PrimitivesVersion changes when the server's prompts or resources may have changed. It is 0 before the first
	// connection.
	PrimitivesVersion uint64
}

// NeedsSecret reports whether the server failed because of a missing secret: see Spec.MissingReason.
func (s State) NeedsSecret() bool {
	return s.Phase == Failed && s.Failure.Code == transport.SecretNeeded
}

// NeedsVariable reports whether the server failed because of an unset environment variable.
func (s State) NeedsVariable() bool {
	return s.Phase == Failed && s.Failure.Code == transport.VariableNeeded
}

// Observer is notified of changes. Its methods are called sequentially for one server,
// from its goroutine, and must not block.
type Observer interface {
	StateChanged(State)
	// ToolsListed receives the complete list after each connect and list_changed. It may replace a definition with an
	// equal copy.
	ToolsListed(server string, tools []*tool.Definition)
}

// trySignal sends without blocking to c, whose capacity is 1.
func trySignal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// clearSignal removes a pending signal.
func clearSignal(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
