package ops

import (
	"context"
	"io"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// maxReplay limits the number of entries that are replayed to a listener that reconnects. Above the limit, a reload
	// is cheaper.
	maxReplay = 50_000

	eventPingInterval = 15 * time.Second
	maxWriteBytes     = 64 << 10 // approximate size in bytes
)

// Events returns a stream of events that ends when the listener disconnects. The stream fails with an OVERLOADED
// problem if there are too many listeners.
func (h *EventHub) Events(_ context.Context, _ Caller, in EventQuery) (StreamFunc, error) {
	return newEventListener(h, in).streamEvents, nil
}

// eventListener is one stream of events.
type eventListener struct {
	hub      *EventHub
	since    string                 // the last event ID that the client received; "" for a new listener
	kinds    map[EventKind]bool     // nil means all kinds
	position activity.ChainPosition // position up to which everything was sent
	next     uint64                 // number of the next chunk
	w        io.Writer
	ping     *time.Timer
}

func newEventListener(h *EventHub, in EventQuery) *eventListener {
	l := &eventListener{hub: h, since: in.LastEventID}
	for _, kind := range in.Types {
		if l.kinds == nil {
			l.kinds = map[EventKind]bool{}
		}
		l.kinds[kind] = true
	}
	return l
}

// streamEvents runs the stream. It is a StreamFunc.
func (l *eventListener) streamEvents(ctx context.Context, w io.Writer) error {
	if err := l.hub.addListener(); err != nil {
		return err
	}
	defer l.hub.removeListener()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.w, l.ping = w, time.NewTimer(eventPingInterval)
	defer l.ping.Stop()
	if !l.waitForHub(ctx) {
		return nil
	}
	err := l.startOrResume(ctx)
	for err == nil && l.isActive(ctx) {
		chunks, more, ok := l.hub.chunksFrom(l.next)
		switch {
		case !ok: // the listener was too slow, so chunks were dropped
			err = l.replayFromLog(ctx)
		case len(chunks) > 0:
			err = l.writeChunks(ctx, chunks)
		default:
			err = l.waitForChunk(ctx, more)
		}
	}
	return err
}

// isActive reports whether the stream should continue.
func (l *eventListener) isActive(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-l.hub.closed:
		return false
	default:
		return true
	}
}

// waitForHub waits until the hub collects events.
func (l *eventListener) waitForHub(ctx context.Context) bool {
	for {
		l.hub.mu.Lock()
		live, more := l.hub.buffer.live, l.hub.buffer.more
		l.position, l.next = l.hub.buffer.head, l.hub.buffer.next
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

// startOrResume resumes after the client's last event. A new client starts at the current position and gets its ID at
// once, to resume from it later.
func (l *eventListener) startOrResume(ctx context.Context) error {
	if l.since == "" {
		return l.write(append(l.position.AppendText([]byte("id: ")), "\n\n"...))
	}
	at, ok := activity.ParseChainPosition(l.since)
	if !ok {
		return l.sendReset()
	}
	l.position = at
	return l.replayFromLog(ctx)
}

// replayFromLog replays log entries that the buffer no longer contains. It then announces that everything else may have
// changed.
func (l *eventListener) replayFromLog(ctx context.Context) error {
	if l.hub.SharedLog {
		return l.sendReset()
	}
	r := l.hub.Log.NewEventReader(l.position)
	defer r.Close()
	if l.hub.Log.LastPosition().Seq-l.position.Seq > maxReplay {
		return l.sendReset()
	}
	var steps []activity.EntryEvent
	for l.isActive(ctx) {
		var err error
		if steps, err = r.ReadEvents(ctx, steps[:0]); err != nil {
			return l.sendReset()
		}
		if err := l.writeActivityEntries(steps); err != nil {
			return err
		}
		l.position = r.Position()
		if joined, err := l.joinLiveChunks(ctx); joined || err != nil {
			return err
		}
	}
	return nil
}

// joinLiveChunks continues with the chunks if they cover the position. The hub adds a chunk slightly after its entries
// are in the log.
func (l *eventListener) joinLiveChunks(ctx context.Context) (joined bool, err error) {
	for l.isActive(ctx) {
		next, ok, ahead, more := l.hub.findNextChunk(l.position)
		switch {
		case ok:
			l.next = next
			c, what := &eventChunk{from: l.position, to: l.position}, newFullChangeSet()
			what.appendEventsTo(ctx, c, l.hub.Servers)
			return true, l.write(c.eventsAfter(l.position.Seq, l.kinds))
		case !ahead:
			return false, nil
		}
		if err := l.waitForChunk(ctx, more); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sendReset tells the client to reload everything, and continues with new events.
func (l *eventListener) sendReset() error {
	l.hub.mu.Lock()
	l.position, l.next = l.hub.buffer.head, l.hub.buffer.next
	l.hub.mu.Unlock()
	return l.write(appendEvent(nil, l.position, EventReset, struct{}{}))
}

// writeActivityEntries writes the events for activity log entries, in parts of about maxWriteBytes.
func (l *eventListener) writeActivityEntries(steps []activity.EntryEvent) error {
	c := &eventChunk{}
	for i := range steps {
		if c.addActivityEntry(&steps[i]); len(c.data) < maxWriteBytes && i < len(steps)-1 {
			continue
		}
		if err := l.write(c.eventsAfter(0, l.kinds)); err != nil {
			return err
		}
		*c = eventChunk{data: c.data[:0], events: c.events[:0]}
	}
	return nil
}

func (l *eventListener) writeChunks(ctx context.Context, chunks []*eventChunk) error {
	for _, c := range chunks {
		if !l.isActive(ctx) {
			break
		}
		if err := l.write(c.eventsAfter(l.position.Seq, l.kinds)); err != nil {
			return err
		}
		l.next++
		if c.to.Seq > l.position.Seq {
			l.position = c.to
		}
	}
	return nil
}

func (l *eventListener) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	l.ping.Reset(eventPingInterval)
	_, err := l.w.Write(p)
	return err
}

// waitForChunk waits for a new chunk and sends pings.
func (l *eventListener) waitForChunk(ctx context.Context, more <-chan struct{}) error {
	select {
	case <-more:
	case <-l.ping.C:
		return l.write([]byte(": ping\n\n"))
	case <-ctx.Done():
	case <-l.hub.closed:
	}
	return nil
}
