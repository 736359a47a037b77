package upstream

import (
	"context"
	"log/slog"
)

// Options are the surroundings of a Set.
type Options struct {
	Logger        *slog.Logger
	LogDir        string // per-server logs go here; "" keeps none
	Observer      Observer
	ClientVersion string // said to servers in clientInfo
	MaxMessage    int    // the largest message a server may send, in bytes; 0 = 64 MiB
}

// Set is the servers that are wanted, each supervised by itself.
type Set struct{ opt Options }

// NewSet makes an empty Set.
func NewSet(opt Options) *Set { return &Set{opt: opt} }

// Apply makes the wanted servers the ones of specs: new ones start, missing
// ones stop, changed ones restart, equal ones are untouched. It returns at once.
func (s *Set) Apply(specs []Spec) { panic("todo") }

// Call calls one tool of one server.
func (s *Set) Call(ctx context.Context, server string, c Call) (Reply, error) { panic("todo") }

// Restart ends the server's connection, if any, and makes a new one at once.
func (s *Set) Restart(server string) error { panic("todo") }

// State is a snapshot of one server's connection.
func (s *Set) State(server string) (State, bool) { panic("todo") }

// LogTail gives the last lines of a server's log.
func (s *Set) LogTail(server string, lines int) ([]string, error) { panic("todo") }

// Close stops every server and waits until all are gone or ctx ends.
func (s *Set) Close(ctx context.Context) error { panic("todo") }
