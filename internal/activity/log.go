package activity

import (
	"context"
	"log/slog"
	"time"
)

// Options are what a Log needs. Dir is the folder of the spool.
type Options struct {
	Dir         string
	MaxResponse int    // bytes of a response that are kept; 0 = 65536
	Durability  string // "process" (also "") or "power"
	MaxSpool    int64  // bytes the spool may hold while the store is away; 0 = 1 GiB
	Retention   Retention
	Logger      *slog.Logger
	Now         func() time.Time
	// Observer, when set, gets every record when it begins and when it ends. It
	// is called on the path of a call and must not block.
	Observer func(Record)
}

// Retention is how much the store keeps. Zero means no limit.
type Retention struct {
	Days       int
	MaxRecords int64
	MaxBytes   int64
}

// Health is how the log is.
type Health struct {
	Degraded bool   `json:"degraded"`
	Message  string `json:"message,omitempty"`
	Backlog  int64  `json:"backlog"`     // entries that are not in the store yet
	Spool    int64  `json:"spool_bytes"` // bytes of the spool on disk
}

// Log is the activity log.
type Log struct{}

// Store is where the projector puts the entries and where queries look.
type Store interface{}

// Open opens the spool in opt.Dir.
func Open(opt Options, st Store) (*Log, error) { panic("todo") }

// Begin writes the beginning of a record.
func (l *Log) Begin(r *Record) error { panic("todo") }

// End writes the outcome of a record that Begin wrote.
func (l *Log) End(id string, o Outcome) error { panic("todo") }

// Append writes a record that is complete at once.
func (l *Log) Append(r *Record) error { panic("todo") }

// List gives the records that f selects.
func (l *Log) List(ctx context.Context, f Filter) (Page, error) { panic("todo") }

// Get gives one record by its id or a unique beginning of it.
func (l *Log) Get(ctx context.Context, idOrPrefix string) (Record, error) { panic("todo") }

// Verification is the result of Verify.
type Verification struct {
	Entries int64
	Break   string // where the chain is broken first; empty when it is whole
}

// Verify checks the chain of what is in the spool.
func (l *Log) Verify(ctx context.Context) (Verification, error) { panic("todo") }

// Health says how the log is.
func (l *Log) Health() Health { panic("todo") }

// Close projects what is there and closes the spool.
func (l *Log) Close(ctx context.Context) error { panic("todo") }
