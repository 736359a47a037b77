package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// stdioLink is a process with lines on its pipes. One goroutine reads its
// stdout and gives every answer to the goroutine that waits for it.
type stdioLink struct {
	*duplex
	proc *process
	in   *pipeWriter
	room *room

	greeted  atomic.Bool // the handshake is over
	skipping bool        // of the reader: a line is being skipped
}

// openStdio starts the process of spec. It has not been initialised.
func openStdio(spec *Spec, launch launcher, up inbound, log *serverLog, room *room, mail *mailbox) (*stdioLink, error) {
	proc, err := startProcess(spec, launch)
	if err != nil {
		return nil, err
	}
	l := &stdioLink{duplex: newDuplex(up, log, mail), proc: proc, room: room}
	l.in = newPipeWriter(proc.stdin, func(err error) { l.end(l.writeError(err)) })
	l.tell = l.in.offer
	proc.keepStderr(log)
	proc.wg.Add(1)
	go func() {
		defer proc.wg.Done()
		l.read()
	}()
	return l, nil
}

// read routes what the process writes until its stdout ends.
func (l *stdioLink) read() {
	defer l.proc.stdout.Close()
	lines := jsonrpc.NewLineReaderIn(l.proc.stdout, l.room.max, l.room.until(l.lost()))
	defer lines.Release()
	for {
		line, err := lines.Next()
		if why := l.unreadable(err); why != nil {
			if l.skipLong(line, why) {
				continue
			}
			err = why
		}
		if err != nil {
			l.end(l.readError(err))
			return
		}
		l.heard.Add(1)
		kept := len(line) >= keepFrom
		if kept {
			line = lines.Keep()
		}
		l.take(bytes.TrimSpace(line), kept)
		l.endSkip()
	}
}

// take deals with one line.
func (l *stdioLink) take(line []byte, kept bool) {
	if len(line) == 0 {
		return
	}
	if c := line[0]; (c == '{' || c == '[') && l.routeAll(line, kept) {
		return
	}
	// A banner without a line end may stand before the answer to initialize.
	// Later on, text before a message may be somebody's data with a message in
	// it that nobody has sent.
	if !l.greeted.Load() {
		i := bytes.LastIndex(line, []byte(`{"jsonrpc"`))
		if i > 0 && split(line[i:], func(m jsonrpc.Message) { l.route(&m, kept) }) == nil {
			line = line[:i]
		}
	}
	l.log.noise(line)
}

// skipTime is how long the rest of a line beyond the bound may take.
const skipTime = 5 * time.Second

// unreadable says why a line is not read to its end, nil when it was.
func (l *stdioLink) unreadable(err error) error {
	switch {
	case errors.Is(err, jsonrpc.ErrTooLong):
		return l.room.tooLarge()
	case errors.Is(err, jsonrpc.ErrCrowded):
		return l.room.crowded()
	}
	return nil
}

// skipLong fails the request that a line answers which is not read to its end,
// and lets the rest of the line be skipped, for a while. When the line does not
// say at its beginning what it answers nobody can tell whom to fail: the link
// ends.
func (l *stdioLink) skipLong(start []byte, why error) bool {
	id, ok := numericID(jsonrpc.BrokenAnswer(start[:min(len(start), 256)]))
	if !ok || !l.wait.reject(id, why) {
		return false
	}
	if l.greeted.Load() { // initialize is not to be cancelled
		// As long as it writes this, nothing else gets through.
		l.tell(jsonrpc.AppendNotification(nil, methodCancelled, fmt.Appendf(nil, `{"requestId":%d,"reason":"the answer is too large"}`, id)))
	}
	l.skipping = true
	return l.proc.stdout.SetReadDeadline(time.Now().Add(skipTime)) == nil
}

// endSkip ends the time limit of skipLong, but not the one of a process that
// has ended.
func (l *stdioLink) endSkip() {
	if !l.skipping {
		return
	}
	l.skipping = false
	l.proc.stdout.SetReadDeadline(time.Time{})
	select {
	case <-l.proc.exited: // it may have set its own just before
		l.proc.stdout.SetReadDeadline(time.Now().Add(drainTime))
	default:
	}
}

// readError says why the output ended. When it is the process that ended, its
// status says more than the end of the pipe does.
func (l *stdioLink) readError(err error) error {
	if l.skipping {
		return l.room.tooLarge()
	}
	if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		if l.proc.gone(nil, drainTime) {
			return l.proc.status
		}
		return errors.New("the process has closed its output")
	}
	return err
}

// writeError says why the input cannot be written.
func (l *stdioLink) writeError(err error) error {
	switch {
	case err == errNotReading:
		return err
	case l.proc.gone(nil, drainTime):
		return l.proc.status
	}
	return errors.New("the process has closed its input")
}

func (l *stdioLink) roundTrip(ctx context.Context, r *request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, &unsentError{err}
	}
	e, err := l.wait.add(r)
	if err != nil {
		return Reply{}, err
	}
	if err := l.in.send(r.msg); err != nil {
		l.wait.abandon(e)
		select {
		case <-l.lost():
			err = l.cause()
		case <-ctx.Done():
			err = ctx.Err()
		}
		return Reply{}, &unsentError{err}
	}
	reply, err := l.wait.wait(ctx, e)
	if err != nil && ctx.Err() != nil && r.cancelable {
		l.in.send(jsonrpc.AppendNotification(nil, methodCancelled, cancelledBy(ctx, strconv.AppendUint(nil, r.id, 10))))
	}
	return reply, err
}

func (l *stdioLink) notify(_ context.Context, method string, params json.RawMessage) error {
	return l.in.send(jsonrpc.AppendNotification(nil, method, params))
}

func (l *stdioLink) negotiated(string)      { l.greeted.Store(true) }
func (l *stdioLink) attend(context.Context) {}
func (l *stdioLink) attended() bool         { return true }
func (l *stdioLink) pid() int               { return l.proc.cmd.Process.Pid }
func (l *stdioLink) tidy(time.Time)         {}

// stop ends the process and everything that belongs to the link. A process
// that has broken the connection gets less time.
func (l *stdioLink) stop(hard <-chan struct{}) {
	grace := termGrace
	if l.cause() != nil {
		grace = brokenGrace
	}
	l.end(errStopped)
	l.proc.stop(hard, grace, l.in.close)
}
