package ops

import (
	"context"
	"io"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// maxMissed is how many entries who comes back is told one by one: with more,
	// loading again is less.
	maxMissed = 50_000

	eventsPingEvery = 15 * time.Second
	maxWrite        = 64 << 10 // in bytes, about
)

// Events streams what happens, until the listener leaves. Its error is an
// OVERLOADED problem when too many listen.
func (h *Hub) Events(_ context.Context, _ Caller, in EventQuery) (Stream, error) {
	return newListener(h, in).listen, nil
}

// listener is one stream.
type listener struct {
	hub   *Hub
	since string             // the id of the last event that was read; "" for who comes anew
	kinds map[EventKind]bool // nil: all
	at    activity.Place     // up to which everything is told
	next  uint64             // the number of the chunk that follows
	w     io.Writer
	ping  *time.Timer
}

func newListener(h *Hub, in EventQuery) *listener {
	l := &listener{hub: h, since: in.LastEventID}
	for _, kind := range in.Types {
		if l.kinds == nil {
			l.kinds = map[EventKind]bool{}
		}
		l.kinds[kind] = true
	}
	return l
}

// listen is the life of a stream, a ops.Stream.
func (l *listener) listen(ctx context.Context, w io.Writer) error {
	if err := l.hub.enter(); err != nil {
		return err
	}
	defer l.hub.leave()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.w, l.ping = w, time.NewTimer(eventsPingEvery)
	defer l.ping.Stop()
	if !l.awaitHub(ctx) {
		return nil
	}
	err := l.begin(ctx)
	for err == nil && l.goesOn(ctx) {
		chunks, more, ok := l.hub.chunks(l.next)
		switch {
		case !ok: // too slow
			err = l.catchUp(ctx)
		case len(chunks) > 0:
			err = l.writeChunks(ctx, chunks)
		default:
			err = l.wait(ctx, more)
		}
	}
	return err
}

// goesOn reports whether the stream has not come to its end.
func (l *listener) goesOn(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-l.hub.closed:
		return false
	default:
		return true
	}
}

// awaitHub waits until what happens is put into chunks.
func (l *listener) awaitHub(ctx context.Context) bool {
	for {
		l.hub.mu.Lock()
		live, more := l.hub.recent.live, l.hub.recent.more
		l.at, l.next = l.hub.recent.head, l.hub.recent.next
		l.hub.mu.Unlock()
		if live {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		case <-l.hub.closed:
			return false
		}
	}
}

// begin begins where the listener has stopped, or with what happens from now on:
// then it gets an id to come back with, in any case.
func (l *listener) begin(ctx context.Context) error {
	if l.since == "" {
		return l.write(append(l.at.Append([]byte("id: ")), "\n\n"...))
	}
	at, ok := activity.ParsePlace(l.since)
	if !ok {
		return l.reset()
	}
	l.at = at
	return l.catchUp(ctx)
}

// catchUp tells from the log what is not in the chunks any more, and what may have
// changed besides.
func (l *listener) catchUp(ctx context.Context) error {
	if l.hub.Shared {
		return l.reset()
	}
	r := l.hub.Log.ReadFrom(l.at)
	defer r.Close()
	if l.hub.Log.Place().Seq-l.at.Seq > maxMissed {
		return l.reset()
	}
	var steps []activity.Step
	for l.goesOn(ctx) {
		var err error
		if steps, err = r.Next(ctx, steps[:0]); err != nil {
			return l.reset()
		}
		if err := l.writeSteps(steps); err != nil {
			return err
		}
		l.at = r.At()
		if joined, err := l.join(ctx); joined || err != nil {
			return err
		}
	}
	return nil
}

// join goes on with the chunks, if what follows is there: the hub tells it a little
// later than the log has it.
func (l *listener) join(ctx context.Context) (joined bool, err error) {
	for l.goesOn(ctx) {
		next, ok, ahead, more := l.hub.join(l.at)
		switch {
		case ok:
			l.next = next
			c, what := &chunk{from: l.at, to: l.at}, all()
			what.tell(ctx, c, l.hub.Servers)
			return true, l.write(c.after(l.at.Seq, l.kinds))
		case !ahead:
			return false, nil
		}
		if err := l.wait(ctx, more); err != nil {
			return false, err
		}
	}
	return false, nil
}

// reset has everything loaded again, and goes on with what happens from now on.
func (l *listener) reset() error {
	l.hub.mu.Lock()
	l.at, l.next = l.hub.recent.head, l.hub.recent.next
	l.hub.mu.Unlock()
	return l.write(appendReset(nil, l.at))
}

func (l *listener) writeSteps(steps []activity.Step) error {
	c := &chunk{}
	for i := range steps {
		if c.add(&steps[i]); len(c.data) < maxWrite && i < len(steps)-1 {
			continue
		}
		if err := l.write(c.after(0, l.kinds)); err != nil {
			return err
		}
		*c = chunk{data: c.data[:0], events: c.events[:0]}
	}
	return nil
}

func (l *listener) writeChunks(ctx context.Context, chunks []*chunk) error {
	for _, c := range chunks {
		if !l.goesOn(ctx) {
			break
		}
		if err := l.write(c.after(l.at.Seq, l.kinds)); err != nil {
			return err
		}
		l.next++
		if c.to.Seq > l.at.Seq {
			l.at = c.to
		}
	}
	return nil
}

func (l *listener) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	l.ping.Reset(eventsPingEvery)
	_, err := l.w.Write(p)
	return err
}

// wait waits for something to tell.
func (l *listener) wait(ctx context.Context, more <-chan struct{}) error {
	select {
	case <-more:
	case <-l.ping.C:
		return l.write([]byte(": ping\n\n"))
	case <-ctx.Done():
	case <-l.hub.closed:
	}
	return nil
}
