package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/ondisk"
)

// spool is the append-only log of entries, in files called segments. An entry is durable when appendEntry returns.
// Entries that are appended during a write are written together by the next write, so a slow disk causes larger writes
// instead of longer waits.
//
// The spool also keeps the newest entries in memory for the projector. If the projector falls behind, memory stays
// limited, and the projector reads from the files.
type spool struct {
	spoolDir
	syncEachWrite bool // fsync every write
	maxBytes      int64
	maxSegment    int64
	projectorWake wakeSignal // raised when there are entries for the projector
	checkWake     wakeSignal // raised when the watcher should check the spool
	lock          *ondisk.LockedFile

	recentDir string // directory of the second copy of the newest entries; "" to keep it in the memory of the process

	mu               sync.Mutex // guards the fields below
	writeDone        sync.Cond  // signals the end of a write
	syncing          sync.Mutex // serializes syncFiles; locked before mu
	writing          bool       // whether a goroutine is writing, without holding mu
	closed           bool
	ids              ulidGenerator
	chain            string
	lastEncoded      chainLink // the last encoded entry
	durable          chainLink // the last written entry
	synced           chainLink // the last entry that is known to be on the disk
	projected        int64     // the last entry that the store has
	run              *writeRun
	writeError       error     // error of the last write; nil if it succeeded
	blockedBy        error     // error that makes the spool refuse new records; nil if it accepts them
	storeError       error     // like blockedBy, but because of the store
	deletedAt        time.Time // when the spool was last found deleted
	queue            entryQueue
	lastAppendTime   time.Time   // time of the last entry
	segments         []*segment  // oldest first
	pendingBytes     int64       // encoded bytes that are not written yet
	reservedUpTo     int64       // offset in the last segment up to which room is reserved
	followerWake     wakeSignal  // raised at each write; nil if there is no follower
	followed         int64       // the last entry that the follower read
	expectedOutcomes int         // number of expected outcomes, for which room is reserved
	fullSegments     []spoolFile // files of full segments that must be synced and closed

	// Only the writer (see writing) changes the next three fields, while it holds mu. lastSegment is also in segments.
	lastSegment     *segment
	file            spoolFile // open file of lastSegment; nil until something is written
	needsNewSegment bool      // whether the next write must begin a new segment

	// Only the writer uses the next two fields.
	recent       *recentCopy
	keptOutcomes map[string]backedUpOutcome // outcomes that an earlier process could not write
}

// MaxBatch is the maximum number of entries in one call of Store.ProjectEntries.
const MaxBatch = 2048

const spareSegments = 1 // number of projected segments that are kept, in case the database is lost

// writeRun is a series of successful writes. A failed write ends it. Then all its entries that are not durable fail,
// because their hashes depend on an entry that was lost.
type writeRun struct {
	durable int64
	err     error
}

// appendEntry assigns a sequence number and a hash to the entry, and returns after it is written.
func (s *spool) appendEntry(d *entryDraft) (entryIdentity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureRoomFor(d); err != nil {
		return entryIdentity{}, err
	}
	st, owed := s.encodeEntry(d), s.expectedOutcomes
	s.expectedOutcomes = s.countOwedOutcomesAfter(d)
	change := s.expectedOutcomes - owed
	r := s.run
	for s.durable.seq < st.seq && r.err == nil {
		if s.writing {
			s.writeDone.Wait()
		} else {
			s.writePending()
		}
	}
	if r.err != nil && st.seq > r.durable {
		s.expectedOutcomes -= change
		return entryIdentity{}, r.err
	}
	return st, nil
}

// ensureRoomFor waits until there is room for the entry and for the expected outcomes.
func (s *spool) ensureRoomFor(d *entryDraft) error {
	owed := s.countOwedOutcomesAfter(d)
	for turned := false; ; {
		if err := s.entryRejectionReason(d); err != nil {
			return err
		}
		full := d.kind != KindEnd && !turned && s.lastSegment != nil && s.lastSegment.size+s.pendingBytes >= s.maxSegment
		if !full && s.hasRoomFor(d, owed) {
			return nil
		}
		done, err := s.prepareRoom(d.maxSize()+int64(owed)*outcomeRoom, full)
		if err != nil && !s.hasRoomFor(d, owed) {
			return err
		}
		turned = turned || done
		owed = s.countOwedOutcomesAfter(d)
	}
}

// entryRejectionReason returns why the spool cannot accept the entry now, or nil if it can.
func (s *spool) entryRejectionReason(d *entryDraft) error {
	switch {
	case s.closed:
		return errClosed
	case d.kind == KindEnd: // must be recorded, because the call was made
		return nil
	case s.blockedBy != nil:
		return s.blockedBy
	case s.storeError != nil:
		return s.storeError
	case s.diskSize() >= s.maxBytes:
		return fmt.Errorf("the spool has reached its limit of %d bytes, which are not in the database yet", s.maxBytes)
	}
	return nil
}

// setStoreError sets the error of the store's disk. While err is not nil, the spool refuses new records.
func (s *spool) setStoreError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeError = err
}

// countOwedOutcomesAfter returns the number of expected outcomes after the entry is written.
func (s *spool) countOwedOutcomesAfter(d *entryDraft) int {
	switch {
	case d.kind == KindBegin:
		return s.expectedOutcomes + 1
	case d.roomReserved:
		return s.expectedOutcomes - 1
	}
	return s.expectedOutcomes
}

// hasRoomFor reports whether room is reserved for the entry and for owed expected outcomes.
func (s *spool) hasRoomFor(d *entryDraft, owed int) bool {
	if s.file == nil || s.needsNewSegment {
		return false
	}
	return s.reservedUpTo-s.lastSegment.size-s.pendingBytes >= d.maxSize()+int64(owed)*outcomeRoom
}

// encodeEntry encodes the entry into memory, after the other waiting entries.
func (s *spool) encodeEntry(d *entryDraft) entryIdentity {
	st := entryIdentity{seq: s.lastEncoded.seq + 1, id: d.id, time: s.now().UTC().Truncate(time.Microsecond)}
	s.lastAppendTime = st.time
	if d.id == "" {
		st.id = s.ids.nextULID(st.time)
		d.facts.Time = st.time.UnixMicro()
	}
	b := s.queue.blockWithRoom(lineOverhead + prefixMax + len(d.body.data))
	start := len(b.data)
	line := b.data[start : start+hexLen+1]
	line[hexLen] = ' '
	line = appendPayloadPrefix(line, d.kind, st.id, st.seq, st.time, max(s.ids.ms, st.time.UnixMilli()))
	line = append(line, d.body.data[:d.body.chainedLen]...)
	s.lastEncoded = chainLink{st.seq, sealLine(line, s.lastEncoded.hash)}
	line = d.body.toStoredLine(line)
	b.data = append(b.data[:start+len(line)], '\n')
	s.pendingBytes += int64(len(line)) + 1
	b.entries = append(b.entries, Entry{
		Seq: st.seq, Kind: d.kind, ID: st.id, BeginSeq: d.of, Hash: s.lastEncoded.hash,
		Payload: line[hexLen+1 : len(line) : len(line)], Facts: d.facts, Redacts: d.redacts,
	})
	return st
}

// diskSize returns the size of the spool on disk.
func (s *spool) diskSize() int64 {
	var n int64
	for _, seg := range s.segments {
		n += seg.size
	}
	return n
}

// close waits for a running write and closes the spool. ended states whether all outcomes are written.
func (s *spool) close(ended bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.writeDone.Wait()
	}
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	for _, f := range s.listOpenFiles() {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	whole := err == nil && ended && s.blockedBy == nil && s.writeError == nil
	return errors.Join(err, s.recent.close(whole), s.lock.Close())
}

// listOpenFiles returns the open files, oldest first.
func (s *spool) listOpenFiles() []spoolFile {
	if s.file == nil {
		return s.fullSegments
	}
	return append(slices.Clip(s.fullSegments), s.file)
}

// lastDurableSeq returns the sequence number of the last durable entry.
func (s *spool) lastDurableSeq() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable.seq
}

// unprojectedCount returns the number of durable entries that are not in the store.
func (s *spool) unprojectedCount() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable.seq - s.projected
}

// isIdle reports whether nothing was appended for at least d.
func (s *spool) isIdle(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Sub(s.lastAppendTime) >= d
}

// takeBatch appends a batch of entries after seq from memory to dst. The entries are valid until they are released. ok
// is false if memory does not contain the next entry.
func (s *spool) takeBatch(dst []Entry, seq int64) (entries []Entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable.seq == seq {
		return dst, true
	}
	entries = s.queue.copyEntriesAfter(dst, seq, MaxBatch)
	return entries, len(entries) > 0 && entries[0].Seq == seq+1
}

// releaseProjected records that the store has the entries up to seq.
func (s *spool) releaseProjected(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projected = seq
	if s.followerWake != nil {
		seq = min(seq, s.followed)
	}
	s.queue.releaseUpTo(seq)
}

// pruneSegments removes segments whose entries are safely in the store, except for the spare segments. It does nothing
// if there are fewer than least of them.
func (s *spool) pruneSegments(ctx context.Context, seq int64, least int, sync func(context.Context) error) error {
	s.mu.Lock()
	n := -spareSegments
	for i := 1; i < len(s.segments) && s.segments[i].first <= seq+1; i++ {
		n++
	}
	s.mu.Unlock()
	if n < least {
		return nil
	}
	if err := sync(ctx); err != nil {
		return err
	}
	for range n {
		s.mu.Lock()
		path := s.segments[0].path
		s.segments = s.segments[1:]
		s.mu.Unlock()
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.logger.Warn("a segment file of the activity log cannot be removed", "error", err)
		}
	}
	return nil
}
