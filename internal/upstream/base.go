package upstream

import (
	"log/slog"
	"sync/atomic"

	"mcpproxy/internal/process"
	"mcpproxy/internal/startup"
	"mcpproxy/internal/wire"
)

// Options are the surroundings of a Set.
type Options struct {
	Logger        *slog.Logger
	LogDir        string // per-server logs go here; "" keeps none
	Observer      Observer
	ClientVersion string // said to servers in clientInfo
	// Account returns what proves to the server of that name who asks, or nil; for
	// servers over HTTP. Nil when no server has any.
	Account    func(server string) wire.Account
	MaxMessage int // the largest message a server may send, in bytes; 0 = 64 MiB
}

// surroundings are what all servers have in common.
type surroundings struct {
	Options
	launch *process.Launcher
	large  *wire.Buffers   // of all budgets
	starts *startup.Queue  // processes that start; nil: they start without waiting
	ids    *atomic.Uint64  // of requests: unique over all servers and their connections, not to be guessed
	hard   <-chan struct{} // closed when stopping must not take its time any more
}

// base is what the parts of a server have in common.
type base struct {
	*surroundings
	Spec   Spec           // only read
	runner startup.Runner // what fetches the server before it starts
	mask   process.Masker
	log    *process.Log
}

func newBase(spec Spec, around *surroundings) *base {
	b := &base{surroundings: around, Spec: spec, runner: spec.runner(), mask: process.NewMasker(spec.Secrets)}
	b.log = process.NewLog(around.LogDir, spec.Name, b.mask)
	return b
}
