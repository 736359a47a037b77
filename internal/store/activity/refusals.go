package activity

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the records of refused calls. Any client can cause refusals, so the number of records about one actor's
// refusals in an hour is limited, even if all its calls differ.
const (
	refusalWindow = time.Hour
	// Maximum number of records about refusals of one actor in a window, and of one connection. Further refusals share
	// one additional record.
	maxRefusals         = 1000
	maxRefusalsOfOrigin = 250
	// Maximum bytes of the caller's texts in these records. Above it, records have no arguments and only short texts.
	maxRefusalText = 1 << 20
	maxBriefText   = 256

	// The count of a repeated refusal is first written after firstCountDelay. The interval doubles each time, up to
	// maxCountDelay.
	firstCountDelay = 10 * time.Second
	maxCountDelay   = 10 * time.Minute

	floodThreshold  = 1000 // refusals of one actor in a window after which a flood is reported
	maxNames        = 4096 // maximum number of distinct names counted among the further refusals
	maxEndedWindows = 4    // maximum number of ended windows whose counts wait to be written
)

// refusalCounter combines identical refusals in one record. It writes the first refusal immediately, counts the others
// in memory, and writes the counts at intervals.
type refusalCounter struct {
	log      *recordWriter
	seed     maphash.Seed
	countDue wakeSignal // raised when there is a count to write
	done     chan struct{}

	writing sync.Mutex // serializes writing the counts

	mu     sync.Mutex // guards the fields below; held while a record is written
	actors map[string]*actorRefusalWindow
	ended  []*actorRefusalWindow
	byID   map[string]*countedRefusal

	flooding sync.Map // actor → refusalFlood; can be read while mu is held during a slow write
}

// refusalFlood contains the number of refused calls of an actor, and their times.
type refusalFlood struct {
	until       time.Time
	first, last time.Time
	times       int64
}

// actorRefusalWindow counts the refusals of one actor in a period.
type actorRefusalWindow struct {
	actor         string
	began         time.Time
	first         time.Time // wall clock time of began
	kinds         map[[sha256.Size]byte]*countedRefusal
	origins       map[string]int // number of records by connection
	text          int            // bytes of the caller's texts in the records
	times         int64
	last          time.Time
	floodRecorded bool
	further       *countedRefusal   // the shared record of refusals without a separate record
	all           []*countedRefusal // all of kinds, and further
}

// countedRefusal is the record of a refusal, and the number of times that the refusal was repeated.
type countedRefusal struct {
	id            string
	seq           int64
	times         int64
	last          time.Time
	written       int64 // the value of times that was last written to the spool
	countInterval time.Duration
	due           time.Time
	names         map[uint64]struct{} // only for further: hashes of the requested names
}

func newRefusalCounter(l *recordWriter) *refusalCounter {
	return &refusalCounter{
		log: l, seed: maphash.MakeSeed(), countDue: newWakeSignal(), done: make(chan struct{}),
		actors: map[string]*actorRefusalWindow{}, byID: map[string]*countedRefusal{},
	}
}

// addRefusal writes a record for a refusal of a new kind. It counts other refusals in an existing record.
func (f *refusalCounter) addRefusal(r *Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	w := f.currentWindow(r.Actor, now)
	w.times++
	w.last = f.log.spool.now().UTC()
	if w.times > floodThreshold {
		f.recordFlood(w)
	}
	defer f.updateFlood(w)
	key := refusalKindKey(r)
	k := w.kinds[key]
	switch {
	case k != nil:
		f.countRepeat(k, r, w.last, now)
		return nil
	case len(w.kinds) >= maxRefusals, r.Origin != "" && w.origins[r.Origin] >= maxRefusalsOfOrigin:
		return f.countWithoutOwnRecord(w, r, now)
	}
	k = &countedRefusal{}
	if err := f.writeFirstRefusal(w, k, w.toBoundedRecord(r, f.log.maxResponse), r); err != nil {
		return err
	}
	w.kinds[key] = k
	w.origins[r.Origin]++
	return nil
}

// currentWindow returns the current window of an actor. A window that has ended is kept until its counts are written.
func (f *refusalCounter) currentWindow(actor string, now time.Time) *actorRefusalWindow {
	w := f.actors[actor]
	if w != nil && now.Sub(w.began) < refusalWindow {
		return w
	}
	if w != nil {
		f.endWindow(w)
	}
	w = &actorRefusalWindow{
		actor: actor, began: now, first: f.log.spool.now().UTC(),
		kinds: map[[sha256.Size]byte]*countedRefusal{}, origins: map[string]int{},
	}
	f.actors[actor] = w
	f.countDue.wake()
	return w
}

// endWindow ends the window of an actor. Its counts still have to be written.
func (f *refusalCounter) endWindow(w *actorRefusalWindow) {
	delete(f.actors, w.actor)
	f.ended = append(f.ended, w)
}

// forgetWindow drops the counts of a window.
func (f *refusalCounter) forgetWindow(w *actorRefusalWindow) {
	for _, k := range w.all {
		delete(f.byID, k.id)
	}
}

// refusalKindKey returns a key that is equal for all refusals that share a record. Arguments, reasons and request IDs
// do not affect the key.
func refusalKindKey(r *Record) [sha256.Size]byte {
	texts := []string{
		string(r.Source), r.SessionID, r.ClientName, r.ClientVersion, r.ServerName, r.ToolName,
		r.Metadata.ToolVariant, r.Metadata.ErrorCode, r.ErrorMessage, r.Metadata.Action,
	}
	if in := r.Metadata.Intent; in != nil {
		texts = append(texts, in.OperationType, in.DataSensitivity)
	}
	var buf []byte
	for _, s := range texts {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	return sha256.Sum256(buf)
}

// toBoundedRecord returns the record that is written for r. It is complete as long as the caller's texts fit in the
// limit of the window, and shortened after that.
func (w *actorRefusalWindow) toBoundedRecord(r *Record, most int) *Record {
	m := *r
	size := min(len(m.Arguments), most) + min(len(m.Metadata.Detail), most) + min(len(m.ErrorMessage), maxMessage)
	if m.Metadata.Intent != nil {
		size += min(len(m.Metadata.Intent.Reason), maxMessage) + min(len(m.Metadata.Intent.Declared), maxMessage)
	}
	for _, warning := range m.Metadata.Warnings[:min(len(m.Metadata.Warnings), maxWarnings)] {
		size += min(len(warning), maxMessage)
	}
	if w.text+size <= maxRefusalText {
		w.text += size
		return &m
	}
	m.RequestBytes = max(m.RequestBytes, int64(len(m.Arguments)))
	m.ArgumentsTruncated = len(m.Arguments) > 0
	m.Arguments, m.Metadata.Warnings, m.Metadata.Search = nil, nil, nil
	m.ErrorMessage, m.Metadata.Detail = clipText(m.ErrorMessage, maxBriefText), clipText(m.Metadata.Detail, maxBriefText)
	if in := m.Metadata.Intent; in != nil {
		m.Metadata.Intent = &Intent{OperationType: in.OperationType, DataSensitivity: in.DataSensitivity}
	}
	return &m
}

// writeFirstRefusal writes m, the record of the first refusal of its kind. It sets the ID and the Timestamp of r.
func (f *refusalCounter) writeFirstRefusal(w *actorRefusalWindow, k *countedRefusal, m, r *Record) error {
	run, err := f.log.writeRecord(KindWhole, m)
	if err != nil {
		return err
	}
	r.ID, r.Timestamp = m.ID, m.Timestamp
	k.id, k.seq, k.times, k.written, k.last, k.countInterval = m.ID, run.seq, 1, 1, m.Timestamp, firstCountDelay
	f.byID[k.id] = k
	w.all = append(w.all, k)
	return nil
}

// countRepeat counts a refusal that already has a record.
func (f *refusalCounter) countRepeat(k *countedRefusal, r *Record, at, now time.Time) {
	r.ID, r.Timestamp = k.id, at
	if k.times == k.written {
		k.due = now.Add(k.countInterval)
		f.countDue.wake()
	}
	k.times++
	k.last = at
}

const othersMessage = "refused calls above the limit of records (1,000 per actor and hour, 250 per connection)"

// countWithoutOwnRecord counts a refusal in the shared record, without writing a separate record.
func (f *refusalCounter) countWithoutOwnRecord(w *actorRefusalWindow, r *Record, now time.Time) error {
	f.recordFlood(w)
	if w.further == nil {
		k := &countedRefusal{names: map[uint64]struct{}{}}
		m := &Record{Type: PolicyDecision, Status: Blocked, Actor: r.Actor, Source: r.Source, ErrorMessage: "Further " + othersMessage + ".",
			Metadata: Metadata{Action: "further_refusals"}}
		if err := f.writeFirstRefusal(w, k, m, r); err != nil {
			return err
		}
		w.further = k
	} else {
		f.countRepeat(w.further, r, w.last, now)
	}
	if names := w.further.names; len(names) < maxNames {
		names[maphash.Comparable(f.seed, [2]string{r.ServerName, r.ToolName})] = struct{}{}
	}
	return nil
}

// recordFlood records that very many calls are refused, once per window.
func (f *refusalCounter) recordFlood(w *actorRefusalWindow) {
	if w.floodRecorded {
		return
	}
	w.floodRecorded = true
	f.log.logger.Warn("very many calls are being refused", "actor", w.actor, "refused", w.times, "since", w.first)
	r := Record{Type: System, Status: Failed, Actor: w.actor, Metadata: Metadata{Action: "refusals_flood"},
		ErrorMessage: fmt.Sprintf("Very many calls of actor %s are being refused: %d since %s. Identical ones are one record with a count.",
			w.actor, w.times, w.first.Format(time.RFC3339))}
	if _, err := f.log.writeRecord(KindWhole, &r); err != nil {
		f.log.logger.Error("a flood of refused calls cannot be recorded", "error", err)
	}
}

// floodMessages returns a message for each actor with very many refused calls.
func (f *refusalCounter) floodMessages() []string {
	var out []string
	for actor, told := range f.flooding.Range {
		fl := told.(refusalFlood)
		if !time.Now().Before(fl.until) {
			f.flooding.CompareAndDelete(actor, fl)
			continue
		}
		out = append(out, fmt.Sprintf("Very many calls of actor %s were refused: %d since %s, the last at %s. See `mcpproxy activity list --type policy_decision`.",
			actor, fl.times, fl.first.Format(time.RFC3339), fl.last.Format(time.RFC3339)))
	}
	return out
}

// updateFlood updates the values that floodMessages reports.
func (f *refusalCounter) updateFlood(w *actorRefusalWindow) {
	if w.floodRecorded {
		f.flooding.Store(w.actor, refusalFlood{until: w.began.Add(refusalWindow), first: w.first, last: w.last, times: w.times})
	}
}

// setCurrentCount sets the count of a record to its current value.
func (f *refusalCounter) setCurrentCount(r *Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.byID[r.ID]; k != nil && k.times > 1 {
		r.setRepeats(k.times, k.last, k.furtherRefusalsMessage())
	}
}

// maxCounts limits the number of counts that unwrittenCounts returns.
const maxCounts = 1000

// unwrittenCounts returns the counts that are not in the spool yet, by record ID. If there are more than maxCounts, it
// returns the newest.
func (f *refusalCounter) unwrittenCounts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var changed []*countedRefusal
	for _, k := range f.byID {
		if k.times != k.written {
			changed = append(changed, k)
		}
	}
	if len(changed) > maxCounts {
		slices.SortFunc(changed, func(a, b *countedRefusal) int { return strings.Compare(b.id, a.id) })
		changed = changed[:maxCounts]
	}
	counts := make(map[string]int64, len(changed))
	for _, k := range changed {
		counts[k.id] = k.times
	}
	return counts
}

// setRepeats sets the number of repetitions of the refusal in r, and the time of the last one.
func (r *Record) setRepeats(times int64, last time.Time, message string) {
	first := r.Timestamp
	r.Repeated, r.FirstTime, r.LastTime = times, &first, &last
	if message != "" {
		r.ErrorMessage = message
	}
}

// furtherRefusalsMessage returns the message of the record for further refusals, which replaces its stored message. For
// other records it returns "".
func (k *countedRefusal) furtherRefusalsMessage() string {
	if k.names == nil {
		return ""
	}
	more := ""
	if len(k.names) >= maxNames {
		more = "more than "
	}
	return fmt.Sprintf("%d further refusals, of %s%d different tools: %s.", k.times, more, len(k.names), othersMessage)
}

// run writes the counts when they are due, until ctx ends.
func (f *refusalCounter) run(ctx context.Context) {
	defer close(f.done)
	timer := newStoppedTimer()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.countDue:
		case <-timer.C:
		}
		timer.Stop()
		if next := f.writeCounts(time.Now(), false); !next.IsZero() {
			timer.Reset(max(time.Until(next), time.Second))
		}
	}
}

// writeCounts writes the counts that are due, or all counts. It returns when it must be called again.
func (f *refusalCounter) writeCounts(now time.Time, all bool) (next time.Time) {
	f.writing.Lock()
	defer f.writing.Unlock()
	due, next := f.collectDueCounts(now, all)
	for i := range due {
		d := &due[i]
		p := payload{kind: KindRepeat, of: d.seq, Record: Record{Repeated: d.times, LastTime: &d.last, ErrorMessage: d.message}}
		_, err := f.log.spool.appendEntry(&entryDraft{kind: KindRepeat, id: d.id, of: d.seq, body: encodeBodyInNewBuffer(&p), facts: RecordFacts{Repeats: d.times}})
		if errors.Is(err, errClosed) {
			return time.Time{}
		}
		f.markCountWritten(d, err == nil, now)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropWrittenWindows()
	return next
}

// dueCount is a count that must be written.
type dueCount struct {
	countedRefusal // a copy
	of             *countedRefusal
	message        string
}

// collectDueCounts returns the counts that must be written now, and the time at which the next count is due.
func (f *refusalCounter) collectDueCounts(now time.Time, all bool) (due []dueCount, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	later := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	collect := func(w *actorRefusalWindow, all bool) {
		for _, k := range w.all {
			switch {
			case k.times == k.written:
			case all || !now.Before(k.due):
				due = append(due, dueCount{*k, k, k.furtherRefusalsMessage()})
				later(now.Add(2 * k.countInterval))
			default:
				later(k.due)
			}
		}
	}
	for _, w := range f.actors {
		if over := w.began.Add(refusalWindow); !now.Before(over) {
			f.endWindow(w)
		} else {
			collect(w, all)
			later(over)
		}
	}
	for _, w := range f.ended {
		collect(w, true)
	}
	return due, next
}

// markCountWritten schedules the next write of a count. well states whether this write succeeded.
func (f *refusalCounter) markCountWritten(d *dueCount, well bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if well {
		d.of.written = d.times
	}
	d.of.countInterval = min(2*d.of.countInterval, maxCountDelay)
	d.of.due = now.Add(d.of.countInterval)
}

// dropWrittenWindows drops the ended windows whose counts are written. If too many windows wait, it also drops the
// oldest ones.
func (f *refusalCounter) dropWrittenWindows() {
	f.ended = slices.DeleteFunc(f.ended, func(w *actorRefusalWindow) bool {
		if slices.ContainsFunc(w.all, func(k *countedRefusal) bool { return k.times != k.written }) {
			return false
		}
		f.forgetWindow(w)
		return true
	})
	for len(f.ended) > maxEndedWindows {
		f.log.logger.Error("the counts of refused calls cannot be written and are lost", "actor", f.ended[0].actor)
		f.forgetWindow(f.ended[0])
		f.ended = slices.Delete(f.ended, 0, 1)
	}
}
