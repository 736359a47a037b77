package activity

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// Options are what a Log needs. Zero values are defaults.
type Options struct {
	Dir         string // of the spool; nothing else may be in it
	MaxResponse int    // bytes of the arguments and of a response that are kept; 65,536
	Durability  string // "process" (the default) or "power"
	MaxSpool    int64  // bytes the spool may grow to while the store is away; 1 GiB
	// Retention is asked whenever there may be something to prune; nil is no limit.
	Retention func() Retention
	Logger    *slog.Logger
	Now       func() time.Time
	// Observer, when set, gets every record when it begins and when it ends. It
	// is called on the path of a call and must not block.
	Observer func(Record)

	maxSegment int64
	maxQueue   int
	openFile   func(path string) (spoolFile, error)
}

// The defaults of Options.
const (
	DefaultMaxResponse = 65_536
	DefaultMaxSpool    = 1 << 30
	DurabilityPower    = "power"
)

func (o Options) withDefaults() Options {
	if o.MaxResponse <= 0 {
		o.MaxResponse = DefaultMaxResponse
	}
	if o.MaxSpool <= 0 {
		o.MaxSpool = DefaultMaxSpool
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.maxSegment <= 0 {
		o.maxSegment = 32 << 20
	}
	if o.maxQueue <= 0 {
		o.maxQueue = 8 << 20
	}
	if o.Retention == nil {
		o.Retention = func() Retention { return Retention{} }
	}
	if o.openFile == nil {
		o.openFile = openMapped
		if o.Durability == DurabilityPower {
			o.openFile = openFile // syncing costs far more than writing
		}
	}
	return o
}

// Log is the activity log. It is safe for concurrent use.
type Log struct {
	spool       *spool
	store       Store
	logger      *slog.Logger
	maxResponse int
	retention   func() Retention
	observer    func(Record)
	buffers     bufferPool
	flushes     chan struct{} // somebody waits for the projector
	stop        context.CancelFunc
	stopped     chan struct{}

	mu        sync.Mutex // guards what follows
	open      map[string]running
	unwritten []draft // ends that could not be written yet
	started   bool    // what earlier processes left is in the store
	projected int64
	storeErr  error
	progress  chan struct{} // closed when one of the three above changes; nil when nobody waits
}

// running is a record between Begin and End. record is set for an observer.
type running struct {
	seq    int64
	facts  Facts
	record *Record
}

// Open opens the spool in opt.Dir, which takes no longer when it holds a lot,
// and projects into st in the background, whenever that is ready.
func Open(opt Options, st Store) (*Log, error) {
	opt = opt.withDefaults()
	s := &spool{
		dir: opt.Dir, power: opt.Durability == DurabilityPower,
		maxBytes: opt.MaxSpool, maxSegment: opt.maxSegment, queue: queue{max: opt.maxQueue},
		now: opt.Now, open: opt.openFile, logger: opt.Logger, kick: make(chan struct{}, 1),
	}
	notes, err := s.openSpool()
	if err != nil {
		return nil, fmt.Errorf("open the activity log: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{
		spool: s, store: st, logger: opt.Logger, maxResponse: opt.MaxResponse,
		retention: opt.Retention, observer: opt.Observer, open: map[string]running{},
		flushes: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{}),
	}
	p := &projector{log: l, spool: s, store: st, opened: s.end(), past: s.ids.text()}
	go func() {
		defer close(l.stopped)
		l.tell(notes)
		p.work(ctx)
	}()
	return l, nil
}

// Begin writes the beginning of a record: when it returns, the record is
// durable. It sets the ID, the Timestamp and the Status of r. Its error is an
// AUDIT_UNAVAILABLE problem; then there is no record and the call must not be
// made.
func (l *Log) Begin(r *Record) error {
	r.Status = Pending
	run, err := l.write(KindBegin, r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.open[r.ID] = run
	l.mu.Unlock()
	return nil
}

// Append writes a record that is complete at once. It sets the ID and the
// Timestamp of r. Its error is an AUDIT_UNAVAILABLE problem.
func (l *Log) Append(r *Record) error {
	_, err := l.write(KindWhole, r)
	return err
}

func (l *Log) write(k Kind, r *Record) (running, error) {
	m := *r
	l.bound(&m)
	buf := l.buffers.get()
	defer l.buffers.put(buf)
	*buf = appendRecord(*buf, k, &m, m.Arguments, m.Response)
	facts := factsOf(&m)
	st, err := l.spool.append(&draft{kind: k, body: *buf, facts: facts})
	if err != nil {
		return running{}, unavailable(err)
	}
	r.ID, r.Timestamp = st.id, st.time
	facts.Time = st.time.UnixMicro()
	run := running{seq: st.seq, facts: facts}
	if l.observer != nil {
		shown := m
		shown.ID, shown.Timestamp = st.id, st.time
		run.record = &shown
		l.observer(shown)
	}
	return run, nil
}

// End writes the outcome of a record that Begin wrote. When it cannot be written
// its error is an AUDIT_UNAVAILABLE problem; the outcome is then kept in memory
// and written as soon as that is possible.
func (l *Log) End(id string, o Outcome) error {
	l.mu.Lock()
	run, ok := l.open[id]
	delete(l.open, id)
	l.mu.Unlock()
	if !ok {
		return fmt.Errorf("end a record of the activity log: %s is not open", id)
	}
	var kept []byte
	cut := false
	if len(o.Response) > 0 {
		kept, cut = keptJSON(o.Response, l.maxResponse)
	}
	boundOutcome(&o)
	buf := l.buffers.get()
	defer l.buffers.put(buf)
	*buf = appendOutcome(*buf, run.seq, &o, kept, cut)
	run.facts.Status, run.facts.Duration = o.Status, o.Duration.Milliseconds()
	d := draft{kind: KindEnd, id: id, of: run.seq, body: *buf, facts: run.facts}
	_, err := l.spool.append(&d)
	if err != nil {
		l.keepEnd(d, run.seq, &o)
		err = unavailable(err)
	}
	if l.observer != nil {
		l.observer(ended(*run.record, o, kept, cut))
	}
	return err
}

func ended(r Record, o Outcome, kept []byte, cut bool) Record {
	r.Status = o.Status
	r.Response, r.ResponseTruncated, r.ResponseBytes = kept, cut, o.ResponseBytes
	r.DurationMS = o.Duration.Milliseconds()
	if o.ErrorMessage != "" {
		r.ErrorMessage = o.ErrorMessage
	}
	if o.ErrorCode != "" {
		r.Metadata.ErrorCode = o.ErrorCode
	}
	r.Metadata.Warnings = append(r.Metadata.Warnings[:len(r.Metadata.Warnings):len(r.Metadata.Warnings)], o.Warnings...)
	return r
}

func unavailable(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be written, and nothing is done without a record.",
		"Make room on the disk of the data directory, or see `mcpproxy status`, and try again.").Because(err)
}

// Close projects what is there and closes the spool. Records that are open stay
// so and read as interrupted after the next start. When ctx ends first, what is
// left is projected at the next start.
func (l *Log) Close(ctx context.Context) error {
	flushed := l.flush(ctx)
	l.stop()
	<-l.stopped
	if flushed != nil {
		l.logger.Info("the activity log was closed before its database had everything", "error", flushed)
	}
	return l.spool.close()
}
