package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// sink is where the notifications of one call over HTTP go. Those of the
// call's own stream and those of the server's stream come from two goroutines.
type sink struct {
	r *request

	mu     sync.Mutex // guards closed, and orders the notifications
	closed bool

	backlog backlog
}

// put delivers a notification unless the call is over, and says whether the
// caller wanted it. from is the call in whose stream it came, or nil. A nil sink
// wants nothing.
func (s *sink) put(m *jsonrpc.Message, from *sink) bool {
	if s == nil || !s.r.wants(m.Method) {
		return false
	}
	if s.r.say != nil && s != from {
		s.backlog.add(m, s.deliver)
		return true
	}
	s.deliver(note{method: m.Method, params: m.Params})
	return true
}

func (s *sink) deliver(n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.r.deliver(n)
	}
}

// backlog is what came for a client in the stream of somebody else, who must not
// wait for that client. A goroutine hands it on while there is something.
type backlog struct {
	mu    sync.Mutex // guards what follows
	notes []note
	size  int
	runs  bool
	over  bool
	wg    sync.WaitGroup // of the goroutine
}

// add queues a notification; when the client is far behind it is dropped.
func (b *backlog) add(m *jsonrpc.Message, deliver func(note)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || len(b.notes) >= maxNotes || b.size+len(m.Params) > maxNoteBytes {
		return
	}
	b.notes = append(b.notes, note{method: m.Method, params: bytes.Clone(m.Params)})
	b.size += len(m.Params)
	if !b.runs {
		b.runs = true
		b.wg.Go(func() { b.run(deliver) })
	}
}

func (b *backlog) run(deliver func(note)) {
	for {
		b.mu.Lock()
		notes := b.notes
		b.notes, b.size = nil, 0
		b.runs = len(notes) > 0
		b.mu.Unlock()
		if len(notes) == 0 {
			return
		}
		for _, n := range notes {
			deliver(n)
		}
	}
}

// end takes no more, and waits until what came is handed on.
func (b *backlog) end() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.wg.Wait()
}

// sinks are the sinks of the calls in flight whose callers want notifications.
type sinks struct {
	mu       sync.Mutex // guards what follows
	all      map[uint64]*sink
	deserted deserted
}

func (t *sinks) add(r *request) *sink {
	if r.notify == nil && r.say == nil {
		return nil
	}
	s := &sink{r: r}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[uint64]*sink{}
	}
	t.all[r.id] = s
	return s
}

// remove ends the deliveries: when it returns the caller gets none any more.
// deserted says that the server may still be at work on r.
func (t *sinks) remove(r *request, s *sink, deserted bool) {
	if s == nil && !deserted {
		return
	}
	t.mu.Lock()
	delete(t.all, r.id)
	if deserted {
		t.deserted.add(r)
	}
	t.mu.Unlock()
	if s == nil {
		return
	}
	s.backlog.end()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

func (t *sinks) byID(id uint64) *sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// only gives the sink of the only call in flight, else nil.
func (t *sinks) only(inFlight int) *sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	if inFlight != 1 || len(t.all) != 1 {
		return nil
	}
	for _, s := range t.all {
		if !t.deserted.byOther(s.r) {
			return s
		}
	}
	return nil
}

const (
	maxTold  = 1024 // messages waiting to be told
	tellTime = 5 * time.Second
)

// tell sends msg without waiting: a cancellation, or the answer to a request
// of the server. When the server is too far behind msg is dropped.
func (l *httpLink) tell(msg []byte) {
	select {
	case l.told <- msg:
	default:
	}
}

// sendTold sends what has been told until ctx ends.
func (l *httpLink) sendTold(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-l.told:
			sctx, cancel := context.WithTimeout(ctx, tellTime)
			if err := l.send(sctx, msg); err != nil {
				l.up.doubt()
			}
			cancel()
		}
	}
}

// The pauses between attempts to have the server's own stream.
const (
	minListenPause = time.Second
	maxListenPause = time.Minute
	steadyListen   = 30 * time.Second // a stream that held so long was a good one
)

// attendTime is how long the list of tools waits for the server's own stream.
const attendTime = 250 * time.Millisecond

// attend has the stream opened, and waits for it a moment: some servers answer
// only when they have something to say.
func (l *httpLink) attend(ctx context.Context) {
	close(l.listenNow)
	ctx, cancel := context.WithTimeout(ctx, attendTime)
	defer cancel()
	select {
	case <-l.listens:
	case <-l.lost():
	case <-ctx.Done():
		l.late.Store(true)
	}
}

// listen keeps the stream open on which the server says things by itself,
// until the link ends or the server does not offer one.
func (l *httpLink) listen(ctx context.Context) {
	pause := minListenPause
	opened := sync.OnceFunc(func() { close(l.listens) })
	defer opened()
	for {
		start := time.Now()
		err := l.listenOnce(ctx, opened)
		var refused *statusError
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errSessionGone):
			l.fail(err)
			return
		case errors.As(err, &refused) && !refused.passing():
			return // not offered
		case time.Since(start) >= steadyListen:
			pause = minListenPause
		}
		l.late.Store(true)
		l.up.doubt()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxListenPause)
	}
}

// listenOnce reads one stream until it ends. What was said while there was
// none is lost.
func (l *httpLink) listenOnce(ctx context.Context, opened func()) error {
	state := l.state.Load()
	a, err := l.client.do(ctx, &exchange{method: http.MethodGet, head: state.get})
	if err != nil {
		return err
	}
	defer a.body.Close()
	if a.status == http.StatusNotFound && state.session != "" {
		return errSessionGone
	}
	if a.status != http.StatusOK || a.media != mediaEvents || a.encoded {
		return &statusError{status: a.status}
	}
	l.streams.Store(true)
	defer l.streams.Store(false)
	opened()
	if l.late.Load() {
		l.up.missed()
	}
	events := jsonrpc.NewEventReaderIn(a.body, l.room.max, l.room.until(ctx.Done()))
	defer events.Release()
	for {
		ev, err := events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		l.heard.Add(1)
		if len(ev.Data) == 0 { // it carries an id only
			continue
		}
		if split(ev.Data, func(m jsonrpc.Message) {
			if !m.IsResponse() {
				l.incoming(&m, nil)
			}
		}) != nil {
			l.up.remark("an event is no JSON-RPC message")
		}
	}
}
