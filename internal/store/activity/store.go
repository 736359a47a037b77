package activity

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrIO is wrapped by the error of a Store whose disk fails to write. No record may begin until the disk works again,
// because such a disk may lose more data than it reports.
var ErrIO = errors.New("the disk failed")

// ErrAgain is wrapped by the error of a Store whose connections were closed or that was opened again. The same call may
// succeed immediately. A store that stays unavailable returns another error after some time.
var ErrAgain = errors.New("the database has closed its connections or was opened again")

// retryQuery runs a query up to three times if the store loses its connections.
func retryQuery(query func() error) (err error) {
	for range 3 {
		if err = query(); !errors.Is(err, ErrAgain) {
			break
		}
	}
	return err
}

// SharedStore is a Store that several instances of MCPProxy share, such as PostgreSQL.
type SharedStore interface {
	Store
	// HealthError returns the error that makes the store unhealthy, even if nothing was written since the failure. It
	// returns nil if the store is healthy or its state is not known yet. It does not block.
	HealthError() error
	// EachOwnRecord does the same as EachRecord, but only for the records of this instance.
	EachOwnRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) error
	// EachOtherInstance calls fn for the chain of each other instance.
	EachOtherInstance(ctx context.Context, fn func(name string, chain ChainReader) error) error
}

// Store is the database that the projector writes to and that queries read. ResumePosition, ProjectEntries,
// UnfinishedRecords, Sync and Tidy are never called at the same time. Reading methods are called concurrently.
type Store interface {
	// ResumePosition waits until the store is open. It returns the position in the spool up to which the store has all
	// entries, and notes about damage, such as a damaged database that was renamed. It is called at the start and after
	// every failure.
	ResumePosition(ctx context.Context) (pos SpoolPosition, notes []string, err error)
	// ProjectEntries stores up to MaxBatch entries in order, together with the new position, in one transaction. An end
	// completes the record that it ends. ProjectEntries erases the fields that an entry redacts.
	ProjectEntries(ctx context.Context, entries []Entry, pos SpoolPosition) error
	// UnfinishedRecords returns the records that have no end.
	UnfinishedRecords(ctx context.Context) ([]UnfinishedRecord, error)
	// Sync makes the projected entries survive a loss of power.
	Sync(ctx context.Context) error
	// Tidy does one short piece of deferred work and reports whether there is more. It prunes records that exceed the
	// retention limits and, when idle, prepares the text search.
	Tidy(ctx context.Context, now time.Time, keep Retention, idle bool) (more bool, err error)

	// List returns the records that f selects. For an invalid cursor, it returns a *problem.Problem with the code
	// INVALID_PARAMETER.
	List(ctx context.Context, f Filter) (RecordPage, error)
	// Get returns the record whose ID begins with prefix. It may return the problems NOT_FOUND and AMBIGUOUS.
	Get(ctx context.Context, prefix string) (Record, error)
	// RecordCount returns the number of records, or 0 if it is not known yet. It does not wait.
	RecordCount() int64
	// CallsByServer returns the number of calls of each server that ended since a time, rounded to whole hours.
	CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error)
	// ServerUse returns the usage of each server in the latest hours, including the current hour. Servers without calls
	// are not included.
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUsage, error)
	// ToolUse returns the usage of each tool, by server and tool, for all records that still exist.
	ToolUse(ctx context.Context) (map[[2]string]ToolUsage, error)
	// EachRecord calls fn for every record that f selects at the time of the call, newest first. It does not block
	// other operations while fn runs. It stops if fn returns an error.
	EachRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) error
	// GetStoredRecord returns the entries of the record with this ID. It may return the problem NOT_FOUND.
	GetStoredRecord(ctx context.Context, id string) (StoredRecord, error)
	// PendingErasures returns the erasures that are done in the store but not in the files of the spool.
	PendingErasures(ctx context.Context) ([]FieldErasure, error)
	// FinishErasures records that the spool has erased the fields. done is false if the files of the store still
	// contain them.
	FinishErasures(ctx context.Context, what []FieldErasure) (done bool, err error)
	// EachGapAndCheckpoint calls fn for each range of removed entries and for each checkpoint, ordered by sequence
	// number.
	EachGapAndCheckpoint(ctx context.Context, fn func(ChainPart) error) error
	// EachChainPart calls fn for every entry and for each range of removed entries, ordered by sequence number. It
	// reads one snapshot and does not block other operations. It returns the number of records and the position of the
	// log in the snapshot. It stops if fn returns an error.
	EachChainPart(ctx context.Context, fn func(ChainPart) error) (records int64, end SpoolPosition, err error)
	// Summary counts the calls that q selects.
	Summary(ctx context.Context, q SummaryQuery) (Summary, error)
	// Sessions returns the sessions that q selects.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)
}

// ToolUsage contains the number of calls of a tool, and the time of the last call.
type ToolUsage struct {
	Calls int64
	Last  time.Time // start of the last call; for older calls, start of the hour
}

// ServerUsage contains the calls of a server by hour, and their duration.
type ServerUsage struct {
	Hours []HourlyCalls // oldest first
	P95   time.Duration // 95th percentile of the duration, within 4 %; 0 if unknown
}

// HourlyCalls contains the number of calls that ended in an hour, and how many of them failed.
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
	// Signer signs the position up to which the log is pruned. If it is nil, the position is not signed.
	Signer CheckpointSigner
}

// CheckpointSigner signs checkpoints of the chain.
type CheckpointSigner interface {
	SignCheckpoint(SignedCheckpoint) SignedCheckpoint
}

// Limits of Filter.Limit.
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

// SpoolPosition is the position of the store in the spool: the last projected entry, and where that entry ends in the
// files.
type SpoolPosition struct {
	Chain   string
	Seq     int64
	Hash    Hash
	Segment int64 // sequence number of the first entry of the segment
	Offset  int64
	// Signer is the key that was last recorded, in hexadecimal. Erasing reports whether there are pending erasures.
	// They are not part of the position.
	Signer             string
	HasPendingErasures bool
}

// StoredRecord contains the entries of a record with their sequence numbers and hashes: the entry that began it, and
// the entry that ended it or last counted a refusal. One of them may be missing.
type StoredRecord struct {
	Entry, Outcome []byte
	Seq, EndSeq    int64
	Hash, EndHash  []byte
}

// findErasableFields returns which of the fields the record has, and which of them are already erased. old reports
// whether an earlier version wrote the record.
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
