package upstream

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// Options configure a Set.
type Options struct {
	Logger        *slog.Logger
	LogDir        string // for the servers' logs; "" keeps none
	ProcessDir    string // for process ids, so that the next run can end leftovers; "" keeps none
	Observer      Observer
	ClientVersion string // sent in clientInfo
	// AccountFor returns the OAuth account for an HTTP server of that name, or nil. AccountFor may be nil.
	AccountFor func(server string) transport.ServerAuthorizer
	// Sandboxes starts servers in their sandboxes; nil means one without private files.
	Sandboxes  *sandbox.System
	MaxMessage int // maximum size of a message from a server, in bytes; 0 means 64 MiB
	// DeclareApps makes MCPProxy declare MCP Apps from the start: see Set.DeclareApps.
	DeclareApps bool
	// NeedLearned is called once for each need of a server that becomes known, and must not block. It may be nil.
	NeedLearned func(server string, need KnownNeed)
}

// sharedState is the state that all servers of a Set share.
type sharedState struct {
	Options
	launch  *process.Launcher
	large   transport.LargeBufferPool // shared by all budgets
	starts  *process.StartQueue       // of starting processes; nil: no limit
	ids     atomic.Uint64             // request ids: unique over all servers and connections, and not guessable
	stopNow chan struct{}             // closed when servers must stop without grace
	apps    atomic.Bool               // MCPProxy declares MCP Apps
}

// NextID returns a new request id as JSON.
func (s *sharedState) NextID() json.RawMessage { return strconv.AppendUint(nil, s.ids.Add(1), 10) }

// StopNowSignal returns the channel that is closed when servers must stop without grace.
func (s *sharedState) StopNowSignal() <-chan struct{} { return s.stopNow }

// serverBase is the state that all parts of a server share.
type serverBase struct {
	*sharedState
	Spec         Spec                  // read-only
	runner       process.PackageRunner // the package manager that fetches the server
	mask         process.Masker
	log          *process.Log
	availability availability
	startSlot    atomic.Pointer[process.StartSlot] // in the start queue; nil without one
	tryStarted   atomic.Int64                      // start of the last try, in Unix nanoseconds
	deviations   protocolDeviations
	needs        sessionNeeds
}

// protocolDeviations are a server's deviations from the protocol on one connection, described in MCPProxy's own words.
type protocolDeviations struct {
	mu      sync.Mutex // guards the fields below
	words   []string
	leftOut []string // unusable tools of the last list
}

const maxDeviations = 10

// addDeviation records a deviation, and logs it the first time.
func (b *serverBase) addDeviation(what string) {
	b.deviations.mu.Lock()
	defer b.deviations.mu.Unlock()
	if slices.Contains(b.deviations.words, what) || len(b.deviations.words) == maxDeviations {
		return
	}
	b.deviations.words = append(b.deviations.words, what)
	b.log.WriteRemark(what)
}

// setLeftOut replaces the unusable tools of the last list, and logs the new ones.
func (b *serverBase) setLeftOut(tools []string) {
	for _, what := range tools {
		b.log.WriteRemark(what)
	}
	if more := len(tools) - maxDeviations; more > 0 {
		tools = append(tools[:maxDeviations:maxDeviations], fmt.Sprintf("%d more tools are left out", more))
	}
	b.deviations.mu.Lock()
	defer b.deviations.mu.Unlock()
	b.deviations.leftOut = tools
}

// Deviations returns the server's deviations from the protocol, and its unusable tools.
func (b *serverBase) Deviations() []string {
	b.deviations.mu.Lock()
	defer b.deviations.mu.Unlock()
	return slices.Concat(b.deviations.words, b.deviations.leftOut)
}

// clear removes the deviations for a new connection.
func (o *protocolDeviations) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.words, o.leftOut = nil, nil
}

func newServerBase(spec Spec, around *sharedState) *serverBase {
	b := &serverBase{sharedState: around, Spec: spec, runner: spec.packageRunner(), mask: process.NewMasker(spec.Secrets),
		availability: newAvailability(spec.Name, around.Observer)}
	for _, k := range spec.knownNeeds() {
		b.needs.add(k)
	}
	b.log = process.NewLog(around.LogDir, spec.Name, b.mask)
	return b
}
