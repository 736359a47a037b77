package upstream

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
)

// Options are the surroundings of a Set.
type Options struct {
	Logger        *slog.Logger
	LogDir        string // per-server logs go here; "" keeps none
	ProcessDir    string // the numbers of processes go here, for the next run; "" keeps none
	Observer      Observer
	ClientVersion string // said to servers in clientInfo
	// Account returns what proves to the server of that name who asks, or nil; for
	// servers over HTTP. Nil when no server has any.
	Account    func(server string) transport.Account
	MaxMessage int // the largest message a server may send, in bytes; 0 = 64 MiB
}

// shared are what all servers have in common.
type shared struct {
	Options
	launch *process.Launcher
	large  transport.Buffers   // of all budgets
	starts *process.StartQueue // processes that start; nil: they start without waiting
	ids    atomic.Uint64       // of requests: unique over all servers and their connections, not to be guessed
	hard   chan struct{}       // closed when stopping must not take its time any more
}

// NextID returns an id of ours, as JSON.
func (s *shared) NextID() json.RawMessage { return strconv.AppendUint(nil, s.ids.Add(1), 10) }

// Hard returns what is closed when stopping must not take its time any more.
func (s *shared) Hard() <-chan struct{} { return s.hard }

// base is what the parts of a server have in common.
type base struct {
	*shared
	Spec         Spec           // only read
	runner       process.Runner // what fetches the server before it starts
	mask         process.Masker
	log          *process.Log
	availability availability
	place        atomic.Pointer[process.StartSlot] // among those that start; nil when there is none
	began        atomic.Int64                      // when the last try began, in Unix nanoseconds
	oddities     oddities
}

// oddities are what a server does otherwise than the protocol asks, in our own words. They are
// those of one connection.
type oddities struct {
	mu    sync.Mutex // guards words
	words []string
}

const maxOddities = 10

// odd notes an oddity, and remarks it in the server's log the first time.
func (b *base) odd(what string) {
	b.oddities.mu.Lock()
	defer b.oddities.mu.Unlock()
	if slices.Contains(b.oddities.words, what) || len(b.oddities.words) == maxOddities {
		return
	}
	b.oddities.words = append(b.oddities.words, what)
	b.log.Remark(what)
}

// Oddities returns what the server does otherwise than the protocol asks.
func (b *base) Oddities() []string {
	b.oddities.mu.Lock()
	defer b.oddities.mu.Unlock()
	return slices.Clone(b.oddities.words)
}

// forget forgets the oddities: a new connection begins.
func (o *oddities) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.words = nil
}

func newBase(spec Spec, around *shared) *base {
	b := &base{shared: around, Spec: spec, runner: spec.runner(), mask: process.NewMasker(spec.Secrets),
		availability: newAvailability(spec.Name, around.Observer)}
	b.log = process.NewLog(around.LogDir, spec.Name, b.mask)
	return b
}
