package activity

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options configures a Log. Zero values mean defaults.
type Options struct {
	Dir         string // directory of the spool; it must not contain anything else
	MaxResponse int    // maximum bytes of the arguments and of the response in a record; default 65,536
	Durability  string // "process" (the default) or "power"
	MaxSpool    int64  // maximum bytes of the spool while the store is unavailable; default 1 GiB
	// Retention returns the current limits of the store; nil means no limits.
	Retention func() Retention
	// RecentDir is the directory for a second copy of the newest entries, in case the disk of Dir fails (see
	// FindTmpfsDir). If it is empty, the second copy is in the memory of the process.
	RecentDir string
	// KeyFile is the file of the key that signs checkpoints. Open creates it if it does not exist. If KeyFile is empty,
	// nothing is signed.
	KeyFile string
	// AfterCheck, if not nil, is called after each check of the spool, once a second.
	AfterCheck func()
	Logger     *slog.Logger
	Now        func() time.Time

	maxSegment int64
	maxQueue   int
	checkEvery time.Duration
	openFile   func(path string) (spoolFile, error)
}

// Defaults of Options.
const (
	defaultMaxResponse = 65_536
	defaultMaxSpool    = 1 << 30
	DurabilityPower    = "power"
)

func (o Options) withDefaults() Options {
	o.MaxResponse = cmp.Or(max(0, o.MaxResponse), defaultMaxResponse)
	o.MaxSpool = cmp.Or(max(0, o.MaxSpool), defaultMaxSpool)
	o.maxSegment = cmp.Or(o.maxSegment, 32<<20)
	o.maxQueue = cmp.Or(o.maxQueue, 8<<20)
	o.checkEvery = cmp.Or(o.checkEvery, defaultCheckEvery)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AfterCheck == nil {
		o.AfterCheck = func() {}
	}
	if o.Retention == nil {
		o.Retention = func() Retention { return Retention{} }
	}
	if o.openFile == nil {
		o.openFile = openMappedFile
		if o.Durability == DurabilityPower {
			o.openFile = openPlainFile // a sync takes far longer than a write, so mapping the file would save nothing
		}
	}
	return o
}

// Log is the activity log. It is safe for concurrent use.
type Log struct {
	spool    *spool
	recorder *recordWriter
	outcomes *outcomeWriter
	progress *projectionProgress
	refusals *refusalCounter
	store    Store
	logger   *slog.Logger
	stop     context.CancelFunc
	watching sync.WaitGroup

	verify    func() (Verification, error) // verifies the log until it is closed
	verifying singleflight.Group           // runs verify once at a time
	verified  atomic.Pointer[Verified]     // the last result
	key       *SigningKey

	redacting sync.Mutex // serializes EraseFields

	mu          sync.Mutex // guards openRecords
	openRecords map[string]openRecord
}

// Open opens the spool in opt.Dir, and starts to project its entries into st in the background. The time that Open
// takes does not depend on the size of the spool. The store may become ready later.
func Open(opt Options, st Store) (*Log, error) {
	opt = opt.withDefaults()
	s := &spool{
		spoolDir: spoolDir{dir: opt.Dir, now: opt.Now, openFile: opt.openFile, logger: opt.Logger}, syncEachWrite: opt.Durability == DurabilityPower,
		maxBytes: opt.MaxSpool, maxSegment: opt.maxSegment, queue: entryQueue{max: opt.maxQueue},
		projectorWake: newWakeSignal(), checkWake: newWakeSignal(), recentDir: opt.RecentDir,
	}
	key, err := loadOrCreateSigningKey(opt.KeyFile)
	if err != nil {
		return nil, err
	}
	notes, err := s.openSpool()
	if err != nil {
		return nil, fmt.Errorf("open the activity log: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{
		spool: s, store: st, logger: opt.Logger, openRecords: map[string]openRecord{}, stop: stop,
		recorder: &recordWriter{spool: s, logger: opt.Logger, maxResponse: opt.MaxResponse},
		outcomes: &outcomeWriter{spool: s, logger: opt.Logger},
		key:      key,
		progress: &projectionProgress{spool: s, logger: opt.Logger, asked: newWakeSignal(), ended: make(chan struct{})},
	}
	l.verify = func() (Verification, error) { return l.verifyChain(ctx) }
	l.refusals = newRefusalCounter(l.recorder)
	go l.refusals.run(ctx)
	p := &projector{
		recorder: l.recorder, outcomes: l.outcomes, progress: l.progress, spool: s, store: st,
		retain: opt.Retention, checkpoints: checkpointScheduler{SigningKey: key}, openedAtSeq: s.lastDurableSeq(), openedAtID: s.ids.formatULID(),
	}
	go func() {
		defer close(l.progress.ended)
		l.recorder.recordDamage(notes)
		p.run(ctx)
	}()
	l.watching.Go(func() {
		s.watch(ctx, opt.checkEvery, func() {
			if err := key.restoreDeletedFile(); err != nil {
				opt.Logger.Error("the key of the activity log was deleted and cannot be written again", "error", err)
			}
			opt.AfterCheck()
		})
	})
	return l, nil
}

// Begin writes the beginning of a record and sets the ID, the Timestamp and the Status of r. When Begin returns without
// an error, the beginning is durable. Any error is an AUDIT_UNAVAILABLE problem. In that case, no record exists and the
// call must not be made.
func (l *Log) Begin(r *Record) error {
	r.Status = Pending
	run, err := l.recorder.writeRecord(KindBegin, r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.openRecords[r.ID] = run
	l.mu.Unlock()
	return nil
}

// Append writes a complete record. It sets the ID and the Timestamp of r. Any error is an AUDIT_UNAVAILABLE problem.
func (l *Log) Append(r *Record) error {
	_, err := l.recorder.writeRecord(KindWhole, r)
	return err
}

// AppendRefusal records a refused call and sets the ID and the Timestamp of r. Among identical refusals of an actor,
// only the first is written as a record. Each repetition increases the count of that record, and the count stays in
// memory for some time. Any error is an AUDIT_UNAVAILABLE problem.
func (l *Log) AppendRefusal(r *Record) error {
	r.Type, r.Status = PolicyDecision, Blocked
	return l.refusals.addRefusal(r)
}

// End writes the outcome of a record that Begin wrote. If it cannot be written, End keeps it in memory, retries as soon
// as possible, and returns an AUDIT_UNAVAILABLE problem.
func (l *Log) End(id string, o Outcome) error {
	l.mu.Lock()
	run, ok := l.openRecords[id]
	delete(l.openRecords, id)
	l.mu.Unlock()
	if !ok {
		return fmt.Errorf("end a record of the activity log: %s is not open", id)
	}
	p := newOutcomePayload(run.seq, &o)
	maskAndLimitRecord(&p.Record, l.recorder.maxResponse)
	buf := l.recorder.buffers.get()
	defer l.recorder.buffers.put(buf)
	facts := NewRecordFacts(&p.Record)
	return l.outcomes.write(entryDraft{kind: KindEnd, id: id, of: run.seq, roomReserved: true, body: buf.encodeBody(&p), facts: run.facts.WithOutcome(&facts)}, &p)
}

// Close projects the remaining entries and closes the spool. Records without an outcome become interrupted at the next
// start. If ctx ends first, the remaining entries are projected at the next start.
func (l *Log) Close(ctx context.Context) error {
	l.refusals.writeCounts(time.Now(), true)
	l.outcomes.retryWaiting()
	flushed := l.progress.waitProjected(ctx)
	l.stop()
	_, _, _ = l.verifying.Do("", func() (any, error) { return nil, newUnreadableError(errClosed) }) // waits for a running verification
	<-l.progress.ended
	<-l.refusals.done
	l.watching.Wait()
	if flushed != nil {
		l.logger.Info("the activity log was closed before its database had everything", "error", flushed)
	}
	return l.spool.close(l.outcomes.isDrained())
}

// SigningKey returns the key that signs the log, or nil if nothing is signed.
func (l *Log) SigningKey() *SigningKey { return l.key }
