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

// The bounds of what refused calls put into the log. Who is refused may be
// anybody, so what one actor can write in an hour is bounded, whatever varies
// from one of its calls to the next.
const (
	refusalWindow = time.Hour
	// Records of refusals of one actor in a window, and those of them that came
	// by one connection. What is beyond is counted in one more record.
	maxRefusals         = 1000
	maxRefusalsOfOrigin = 250
	// Bytes of text in them that are the caller's, all together. Beyond, a record
	// goes without arguments, and with short texts.
	maxRefusedText = 1 << 20
	briefText      = 256

	// The number of times a refusal was repeated is written after this time, and
	// then after twice the time before, up to the last.
	countFirst = 10 * time.Second
	countLast  = 10 * time.Minute

	floodAfter   = 1000 // refusals of one actor in a window are said
	maxNames     = 4096 // are told apart among what has no record of its own
	endedWindows = 4    // whose counts wait to be written
)

// refusals makes one record of identical refusals: it writes the first of them
// at once, counts the others in memory, and writes the counts from time to time.
type refusals struct {
	log  *recorder
	seed maphash.Seed
	wake signal // there is a count to write
	done chan struct{}

	writing sync.Mutex // one writes the counts at a time

	mu     sync.Mutex // guards what follows; held while a record is written
	actors map[string]*refusedWindow
	ended  []*refusedWindow
	byID   map[string]*refusal

	flooding sync.Map // actor → flood: read also while mu is held and a disk does not answer
}

// flood is what is told of an actor that is refused very many calls.
type flood struct {
	until       time.Time
	first, last time.Time
	times       int64
}

// refusedWindow is what one actor was refused since a time.
type refusedWindow struct {
	actor   string
	began   time.Time
	first   time.Time // began, as records tell it
	kinds   map[[sha256.Size]byte]*refusal
	origins map[string]int // records by connection
	text    int            // bytes of the caller's text in the records
	times   int64
	last    time.Time
	said    bool
	others  *refusal   // stands for those without a record of their own
	all     []*refusal // kinds and others
}

// refusal is a record, and how often what it tells of has happened.
type refusal struct {
	id      string
	seq     int64
	times   int64
	last    time.Time
	written int64 // times, as the spool has it
	wait    time.Duration
	due     time.Time
	names   map[uint64]struct{} // of others: what was asked for
}

func newRefusals(l *recorder) *refusals {
	return &refusals{
		log: l, seed: maphash.MakeSeed(), wake: newSignal(), done: make(chan struct{}),
		actors: map[string]*refusedWindow{}, byID: map[string]*refusal{},
	}
}

func (f *refusals) add(r *Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	w := f.window(r.Actor, now)
	w.times++
	w.last = f.log.spool.now().UTC()
	if w.times > floodAfter {
		f.say(w)
	}
	defer f.noteFlood(w)
	key := kindOfRefusal(r)
	k := w.kinds[key]
	switch {
	case k != nil:
		f.again(k, r, w.last, now)
		return nil
	case len(w.kinds) >= maxRefusals, r.Origin != "" && w.origins[r.Origin] >= maxRefusalsOfOrigin:
		return f.addOther(w, r, now)
	}
	k = &refusal{}
	if err := f.begin(w, k, w.brief(r, f.log.maxResponse), r); err != nil {
		return err
	}
	w.kinds[key] = k
	w.origins[r.Origin]++
	return nil
}

// window returns the actor's window. One that is over is put aside until its
// counts are written.
func (f *refusals) window(actor string, now time.Time) *refusedWindow {
	w := f.actors[actor]
	if w != nil && now.Sub(w.began) < refusalWindow {
		return w
	}
	if w != nil {
		f.end(w)
	}
	w = &refusedWindow{
		actor: actor, began: now, first: f.log.spool.now().UTC(),
		kinds: map[[sha256.Size]byte]*refusal{}, origins: map[string]int{},
	}
	f.actors[actor] = w
	f.wake.raise()
	return w
}

func (f *refusals) end(w *refusedWindow) {
	delete(f.actors, w.actor)
	f.ended = append(f.ended, w)
}

func (f *refusals) forget(w *refusedWindow) {
	for _, k := range w.all {
		delete(f.byID, k.id)
	}
}

// kindOfRefusal is the same for refusals that are one record. Arguments, reasons
// and the ids of requests may differ.
func kindOfRefusal(r *Record) [sha256.Size]byte {
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

// brief returns what of r is written: all of it, as long as the window has room
// for the caller's texts.
func (w *refusedWindow) brief(r *Record, most int) *Record {
	m := *r
	size := min(len(m.Arguments), most) + min(len(m.Metadata.Detail), most) + min(len(m.ErrorMessage), maxMessage)
	if m.Metadata.Intent != nil {
		size += min(len(m.Metadata.Intent.Reason), maxMessage) + min(len(m.Metadata.Intent.Declared), maxMessage)
	}
	for _, warning := range m.Metadata.Warnings[:min(len(m.Metadata.Warnings), maxWarnings)] {
		size += min(len(warning), maxMessage)
	}
	if w.text+size <= maxRefusedText {
		w.text += size
		return &m
	}
	m.RequestBytes = max(m.RequestBytes, int64(len(m.Arguments)))
	m.ArgumentsTruncated = len(m.Arguments) > 0
	m.Arguments, m.Metadata.Warnings, m.Metadata.Search = nil, nil, nil
	m.ErrorMessage, m.Metadata.Detail = clip(m.ErrorMessage, briefText), clip(m.Metadata.Detail, briefText)
	if in := m.Metadata.Intent; in != nil {
		m.Metadata.Intent = &Intent{OperationType: in.OperationType, DataSensitivity: in.DataSensitivity}
	}
	return &m
}

// begin writes the first refusal of its kind, as m has it, and tells r of it.
func (f *refusals) begin(w *refusedWindow, k *refusal, m, r *Record) error {
	run, err := f.log.write(KindWhole, m)
	if err != nil {
		return err
	}
	r.ID, r.Timestamp = m.ID, m.Timestamp
	k.id, k.seq, k.times, k.written, k.last, k.wait = m.ID, run.seq, 1, 1, m.Timestamp, countFirst
	f.byID[k.id] = k
	w.all = append(w.all, k)
	return nil
}

// again counts a refusal that has a record already.
func (f *refusals) again(k *refusal, r *Record, at, now time.Time) {
	r.ID, r.Timestamp = k.id, at
	if k.times == k.written {
		k.due = now.Add(k.wait)
		f.wake.raise()
	}
	k.times++
	k.last = at
}

const othersMessage = "refused calls of more kinds than are recorded one by one (1,000 an hour for one actor, 250 for one connection)"

// addOther counts a refusal that gets no record of its own.
func (f *refusals) addOther(w *refusedWindow, r *Record, now time.Time) error {
	f.say(w)
	if w.others == nil {
		k := &refusal{names: map[uint64]struct{}{}}
		m := &Record{Type: PolicyDecision, Status: Blocked, Actor: r.Actor, Source: r.Source, ErrorMessage: "Further " + othersMessage + ".",
			Metadata: Metadata{Action: "further_refusals"}}
		if err := f.begin(w, k, m, r); err != nil {
			return err
		}
		w.others = k
	} else {
		f.again(w.others, r, w.last, now)
	}
	if names := w.others.names; len(names) < maxNames {
		names[maphash.Comparable(f.seed, [2]string{r.ServerName, r.ToolName})] = struct{}{}
	}
	return nil
}

// say tells once in a window that there are very many refusals.
func (f *refusals) say(w *refusedWindow) {
	if w.said {
		return
	}
	w.said = true
	f.log.logger.Warn("very many calls are being refused", "actor", w.actor, "refused", w.times, "since", w.first)
	r := Record{Type: System, Status: Failed, Actor: w.actor, Metadata: Metadata{Action: "refusals_flood"},
		ErrorMessage: fmt.Sprintf("Very many calls of actor %s are being refused: %d since %s. Identical ones are one record with a count.",
			w.actor, w.times, w.first.Format(time.RFC3339))}
	if _, err := f.log.write(KindWhole, &r); err != nil {
		f.log.logger.Error("a flood of refused calls cannot be put on record", "error", err)
	}
}

// floods returns messages about the actors that are refused very many calls.
func (f *refusals) floods() []string {
	var out []string
	for actor, told := range f.flooding.Range {
		fl := told.(flood)
		if !time.Now().Before(fl.until) {
			f.flooding.CompareAndDelete(actor, fl)
			continue
		}
		out = append(out, fmt.Sprintf("Very many calls of actor %s were refused: %d since %s, the last at %s. See `mcpproxy activity list --type policy_decision`.",
			actor, fl.times, fl.first.Format(time.RFC3339), fl.last.Format(time.RFC3339)))
	}
	return out
}

// noteFlood keeps what floods returns.
func (f *refusals) noteFlood(w *refusedWindow) {
	if w.said {
		f.flooding.Store(w.actor, flood{until: w.began.Add(refusalWindow), first: w.first, last: w.last, times: w.times})
	}
}

// show puts into a record the count as it is at this moment.
func (f *refusals) show(r *Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.byID[r.ID]; k != nil && k.times > 1 {
		r.repeat(k.times, k.last, k.message())
	}
}

// maxCounts is how many counts unwritten returns.
const maxCounts = 1000

// unwritten returns counts that the spool has not got, by the id of the record: the
// latest, if there are too many.
func (f *refusals) unwritten() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var changed []*refusal
	for _, k := range f.byID {
		if k.times != k.written {
			changed = append(changed, k)
		}
	}
	if len(changed) > maxCounts {
		slices.SortFunc(changed, func(a, b *refusal) int { return strings.Compare(b.id, a.id) })
		changed = changed[:maxCounts]
	}
	counts := make(map[string]int64, len(changed))
	for _, k := range changed {
		counts[k.id] = k.times
	}
	return counts
}

// repeat notes how often and until when r has happened.
func (r *Record) repeat(times int64, last time.Time, message string) {
	first := r.Timestamp
	r.Repeated, r.FirstTime, r.LastTime = times, &first, &last
	if message != "" {
		r.ErrorMessage = message
	}
}

// message is what the record says in the place of what it said first.
func (k *refusal) message() string {
	if k.names == nil {
		return ""
	}
	more := ""
	if len(k.names) >= maxNames {
		more = "more than "
	}
	return fmt.Sprintf("%d further refusals of %s%d names: %s.", k.times, more, len(k.names), othersMessage)
}

// work writes the counts when they are due, until ctx ends.
func (f *refusals) work(ctx context.Context) {
	defer close(f.done)
	timer := stopped()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-timer.C:
		}
		timer.Stop()
		if next := f.write(time.Now(), false); !next.IsZero() {
			timer.Reset(max(time.Until(next), time.Second))
		}
	}
}

// write writes the counts that are due, or all, and returns when to come again.
func (f *refusals) write(now time.Time, all bool) (next time.Time) {
	f.writing.Lock()
	defer f.writing.Unlock()
	due, next := f.due(now, all)
	for i := range due {
		d := &due[i]
		p := payload{kind: KindRepeat, of: d.seq, Record: Record{Repeated: d.times, LastTime: &d.last, ErrorMessage: d.message}}
		_, err := f.log.spool.append(&draft{kind: KindRepeat, id: d.id, of: d.seq, body: newBody(&p), facts: Facts{Times: d.times}})
		if errors.Is(err, errClosed) {
			return time.Time{}
		}
		f.wrote(d, err == nil, now)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropWritten()
	return next
}

// count is a count to write.
type count struct {
	refusal // a copy
	of      *refusal
	message string
}

// due collects what is to be written now, and when there is more.
func (f *refusals) due(now time.Time, all bool) (due []count, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	later := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	collect := func(w *refusedWindow, all bool) {
		for _, k := range w.all {
			switch {
			case k.times == k.written:
			case all || !now.Before(k.due):
				due = append(due, count{*k, k, k.message()})
				later(now.Add(2 * k.wait))
			default:
				later(k.due)
			}
		}
	}
	for _, w := range f.actors {
		if over := w.began.Add(refusalWindow); !now.Before(over) {
			f.end(w)
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

// wrote notes what has become of a count.
func (f *refusals) wrote(d *count, well bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if well {
		d.of.written = d.times
	}
	d.of.wait = min(2*d.of.wait, countLast)
	d.of.due = now.Add(d.of.wait)
}

// dropWritten forgets the windows that are over and written, and the oldest when
// too many are not.
func (f *refusals) dropWritten() {
	f.ended = slices.DeleteFunc(f.ended, func(w *refusedWindow) bool {
		if slices.ContainsFunc(w.all, func(k *refusal) bool { return k.times != k.written }) {
			return false
		}
		f.forget(w)
		return true
	})
	for len(f.ended) > endedWindows {
		f.log.logger.Error("the counts of refused calls cannot be written and are forgotten", "actor", f.ended[0].actor)
		f.forget(f.ended[0])
		f.ended = slices.Delete(f.ended, 0, 1)
	}
}
