package activity

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrIO is wrapped by the error of a Store whose disk fails to write. No record may begin until it works
// again, because such a disk loses more than it reports.
var ErrIO = errors.New("the disk failed")

// ErrAgain is wrapped by the error of a Store whose connections ended or that was opened again: the same
// call may succeed at once. A store that stays unavailable returns another error after some time.
var ErrAgain = errors.New("the database has closed its connections or was opened again")

// retryQuery runs a query up to three times if the store lost its connections in the meantime.
func retryQuery(query func() error) (err error) {
	for range 3 {
		if err = query(); !errors.Is(err, ErrAgain) {
			break
		}
	}
	return err
}

// SharedStore is a Store that several instances of MCPProxy share: PostgreSQL.
type SharedStore interface {
	Store
	// HealthError returns why the store is unhealthy, also if nothing had to be written since it failed. It
	// returns nil if the store is healthy, or if that is not known yet, and does not block.
	HealthError() error
	// EachOwnRecord is EachRecord for the records of this instance only.
	EachOwnRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) error
	// EachOtherInstance calls fn for the chain of each other instance.
	EachOtherInstance(ctx context.Context, fn func(name string, chain ChainReader) error) error
}

// Store is the database that the projector writes to and queries read. Only one call of ResumePosition,
// ProjectEntries, UnfinishedRecords, Sync and Tidy is made at a time. Reading methods are called
// concurrently.
type Store interface {
	// ResumePosition waits until the store is open. It returns how far the store is, and notes about
	// damage, such as a database that was put aside. It is called at the start and after every failure.
	ResumePosition(ctx context.Context) (pos SpoolPosition, notes []string, err error)
	// ProjectEntries stores up to MaxBatch entries in order, and the new position, all or nothing. An end
	// completes the record that it ends. Fields that an entry redacts are erased.
	ProjectEntries(ctx context.Context, entries []Entry, pos SpoolPosition) error
	// UnfinishedRecords returns the records that have no end.
	UnfinishedRecords(ctx context.Context) ([]UnfinishedRecord, error)
	// Sync makes the projected entries survive a loss of power.
	Sync(ctx context.Context) error
	// Tidy does one short piece of deferred work and reports whether there is more. It prunes records past the retention and,
	// when idle, prepares the text search.
	Tidy(ctx context.Context, now time.Time, keep Retention, idle bool) (more bool, err error)

	// List returns the records that f selects. An invalid cursor is a *problem.Problem with code
	// INVALID_PARAMETER.
	List(ctx context.Context, f Filter) (RecordPage, error)
	// Get returns the record whose ID begins with prefix. Its problems are NOT_FOUND and AMBIGUOUS.
	Get(ctx context.Context, prefix string) (Record, error)
	// RecordCount returns the number of records, or 0 if it is not known yet. It does not wait.
	RecordCount() int64
	// CallsByServer returns the number of calls of each server that ended since a time, by whole hours.
	CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error)
	// ServerUse returns how each server was called in the latest hours, including the current one. It
	// leaves out servers that were not called.
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUsage, error)
	// ToolUse returns how each tool was called, by server and tool, as far back as there are records.
	ToolUse(ctx context.Context) (map[[2]string]ToolUsage, error)
	// EachRecord calls fn for every record that f selects at the time of the call, newest first. It blocks
	// nothing while fn runs. An error of fn ends it.
	EachRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) error
	// GetStoredRecord returns the entries of the record with this ID. Its problem is NOT_FOUND.
	GetStoredRecord(ctx context.Context, id string) (StoredRecord, error)
	// PendingErasures returns the redactions that are done in the store but not in the files of the spool.
	PendingErasures(ctx context.Context) ([]FieldErasure, error)
	// FinishErasures notes that the spool has erased the fields. done is false if the files of the store
	// still hold them.
	FinishErasures(ctx context.Context, what []FieldErasure) (done bool, err error)
	// EachGapAndCheckpoint calls fn for the runs of removed entries and for the checkpoints, in order of their
	// numbers.
	EachGapAndCheckpoint(ctx context.Context, fn func(ChainPart) error) error
	// EachChainPart calls fn for every entry and for the runs that the retention removed, in order of
	// their numbers, from one snapshot. It blocks nothing. It returns the number of records and the
	// position of the log in the snapshot. An error of fn ends it.
	EachChainPart(ctx context.Context, fn func(ChainPart) error) (records int64, end SpoolPosition, err error)
	// Summary counts the calls that q selects.
	Summary(ctx context.Context, q SummaryQuery) (Summary, error)
	// Sessions returns the sessions that q selects.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)
}

// ToolUsage says how often a tool was called, and when last.
type ToolUsage struct {
	Calls int64
	Last  time.Time // start of the last call; of old calls, the beginning of the hour
}

// ServerUsage says how a server was called.
type ServerUsage struct {
	Hours []HourlyCalls // oldest first
	P95   time.Duration // 95th percentile of the duration, within 4 %; 0 if unknown
}

// HourlyCalls counts the calls that ended in an hour, and those of them that failed.
type HourlyCalls struct{ Calls, Errors int64 }

// UnfinishedRecord is a record in the store that has no end.
type UnfinishedRecord struct {
	ID    string
	Seq   int64
	Facts RecordFacts
}

// Retention limits the records in the store. Zero means no limit.
type Retention struct {
	Days       int
	MaxRecords int64
	MaxBytes   int64
	// Signer signs the position up to which the log is pruned; nil signs nothing.
	Signer CheckpointSigner
}

// CheckpointSigner signs checkpoints of the chain.
type CheckpointSigner interface {
	SignCheckpoint(SignedCheckpoint) SignedCheckpoint
}

// The limits of Filter.Limit.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)

// BoundedLimit returns the limit of the filter, within the allowed range.
func (f Filter) BoundedLimit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// SpoolPosition says how far the store is with the entries of the spool: the last projected entry, and
// where it ends in the files.
type SpoolPosition struct {
	Chain   string
	Seq     int64
	Hash    Hash
	Segment int64 // number of the first entry of the segment
	Offset  int64
	// Signer is the key on record, in hexadecimal. Erasing reports whether PendingErasures returns
	// something. They are not part of the position.
	Signer  string
	Erasing bool
}

// StoredRecord holds the entries of a record with their numbers and hashes: the one that began it, and the one that ended it or
// last counted a refusal. One of them may be missing.
type StoredRecord struct {
	Entry, Outcome []byte
	Seq, EndSeq    int64
	Hash, EndHash  []byte
}

// findErasableFields returns which of the fields the record has and which are already erased. old reports whether
// an earlier version wrote the record.
func (s *StoredRecord) findErasableFields(fields []ErasableField) (there, already []ErasableField, old bool) {
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
