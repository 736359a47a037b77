package activity

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrIO is what an error of a Store is when its disk does not take what is
// written. Then nothing may begin until it does: such a disk loses more than what
// it says.
var ErrIO = errors.New("the disk failed")

// ErrAgain is what an error of a Store is when its connections have ended, or when it was opened
// again: the same call may succeed at once. A store that stays away returns another error after
// some time.
var ErrAgain = errors.New("the database has closed its connections or was opened again")

// countRepeat makes a query up to three times when the store has lost its connections meanwhile.
func retryQuery(query func() error) (err error) {
	for range 3 {
		if err = query(); !errors.Is(err, ErrAgain) {
			break
		}
	}
	return err
}

// Store is where the projector puts the entries and where queries look. Only
// one call of Resume, Project, Pending, Sync and Tidy is made at a time; what
// reads comes from anywhere at any time.
type Store interface {
	// Resume waits until the store is open and returns how far it is, and what
	// has to be told about it: an earlier file that was put aside, and the
	// like. It is called at the start and after every failure.
	ResumePosition(ctx context.Context) (pos SpoolPosition, notes []string, err error)
	// Project stores entries in their order, MaxBatch at most, and how far the log is
	// then, all or nothing. An end makes its beginning a finished record; what an entry redacts is
	// erased.
	ProjectEntries(ctx context.Context, entries []Entry, pos SpoolPosition) error
	// Pending returns the records that have no end.
	UnfinishedRecords(ctx context.Context) ([]UnfinishedRecord, error)
	// Sync makes what was projected survive the loss of power.
	Sync(ctx context.Context) error
	// Tidy does one short piece of work that can wait, and reports whether
	// there is more: prune what is past the retention and, when idle, prepare
	// the text search.
	Tidy(ctx context.Context, now time.Time, keep Retention, idle bool) (more bool, err error)

	// List returns the records that f selects. An invalid cursor is a
	// *problem.Problem with code INVALID_PARAMETER.
	List(ctx context.Context, f Filter) (RecordPage, error)
	// Get returns the record whose id begins with prefix: NOT_FOUND, AMBIGUOUS.
	Get(ctx context.Context, prefix string) (Record, error)
	// Count returns how many records there are, 0 when that is not known yet. It waits
	// for nothing.
	RecordCount() int64
	// Calls returns how many calls of each server have ended since a time, by the hour.
	CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error)
	// ServerUsage returns how each server was called in the latest hours, that of now
	// included; those that were not are left out.
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUsage, error)
	// ToolUse returns how each tool was called, by server and tool, as far back as
	// there are records.
	ToolUse(ctx context.Context) (map[[2]string]ToolUsage, error)
	// Each calls fn for every record that f selects when it is called, the newest
	// first, and holds up nothing while fn takes its time. The error of fn ends it.
	EachRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) error
	// Stored returns the record with this id: NOT_FOUND.
	GetStored(ctx context.Context, id string) (StoredRecord, error)
	// Erasing returns what projected entries have erased from the store, and is still
	// in the files of the spool.
	PendingErasures(ctx context.Context) ([]Redaction, error)
	// Erased notes that the spool is done with it, when the files of the store have
	// nothing left of it, either; if they have at this time, it is not done.
	FinishErasures(ctx context.Context, what []Redaction) (done bool, err error)
	// Marks calls fn for the runs of entries that are gone, and for the signed places, in
	// the order of their numbers.
	EachChainMark(ctx context.Context, fn func(ChainPart) error) error
	// Chain calls fn for every entry and for those that are gone by the retention, in
	// the order of their numbers, all as they are at one time. It holds up nobody. It
	// returns the number of records, and how far the log is by then. The error of fn
	// ends it.
	EachChainPart(ctx context.Context, fn func(ChainPart) error) (records int64, end SpoolPosition, err error)
	// Summary counts what q selects.
	Summary(ctx context.Context, q SummaryQuery) (Summary, error)
	// Sessions returns the sessions that q asks for.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)
}

// ToolUsage is how a tool was called.
type ToolUsage struct {
	Calls int64
	Last  time.Time // when the last one began; of hours from before it was kept, their beginning
}

// ServerUsage is how a server was called.
type ServerUsage struct {
	Hours []HourlyCalls // oldest first
	P95   time.Duration // at most one call in twenty took longer; within 4 %, and 0 when it is not known
}

// HourlyCalls is how it was called in an hour: calls that have ended, and those of them
// that failed.
type HourlyCalls struct{ Calls, Errors int64 }

// UnfinishedRecord is a record in the store that has no end.
type UnfinishedRecord struct {
	ID    string
	Seq   int64
	Facts RecordFacts
}

// Retention is how much the store keeps. Zero means no limit.
type Retention struct {
	Days       int
	MaxRecords int64
	MaxBytes   int64
	// Signer signs the place up to which the log is pruned; nil: nobody does.
	Signer CheckpointSigner
}

// CheckpointSigner signs places of the chain.
type CheckpointSigner interface{ SignCheckpoint(Checkpoint) Checkpoint }

// The limits of Filter.Limit.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)

// BoundedLimit returns the filter's limit within what is allowed.
func (f Filter) BoundedLimit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// SpoolPosition is how far the entries of the spool are in the store: the entry that
// was projected last, and where it ends in the files.
type SpoolPosition struct {
	Chain   string
	Seq     int64
	Hash    Hash
	Segment int64 // the number of the first entry of the segment
	Offset  int64
	// Signer is the key that is on record, in hexadecimal digits, and Erasing whether Erasing
	// returns something. They are no part of the place.
	Signer  string
	Erasing bool
}

// StoredRecord is a record as the log has it: the entry that began it and the one that ended
// it, or counted a refusal last, with their places in the chain. One of them may not
// be there.
type StoredRecord struct {
	Entry, Outcome []byte
	Seq, EndSeq    int64
	Hash, EndHash  []byte
}

// checkEntry finds which of the fields the record has, and which are erased already.
func (s *StoredRecord) findFields(fields []ErasableField) (there, already []ErasableField, old bool) {
	for _, payload := range [][]byte{s.Entry, s.Outcome} {
		if len(payload) == 0 {
			continue
		}
		_, open, before := splitPayload(payload)
		old = old || before
		_ = eachStoredField(open, func(f storedField) {
			switch {
			case !slices.Contains(fields, f.name):
			case f.erasedTimeText() == nil && !slices.Contains(there, f.name):
				there = append(there, f.name)
			case f.erasedTimeText() != nil:
				already = append(already, f.name)
			}
		})
	}
	return there, already, old
}
