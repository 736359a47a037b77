package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// Stdio is a process with lines on its pipes. One goroutine reads its stdout and
// passes every answer to the goroutine that waits for it.
type Stdio struct {
	*duplex
	proc *process.Process
	in   *process.PipeWriter
	log  *process.Log

	startup  *process.StartWatch
	skipping bool        // of the reader: a line is being skipped
	noisy    atomic.Bool // it has written a line that is no message
}

// NewStdio makes the link of a process that has just been started, and of the
// watch of that start. Nothing is sent yet.
func NewStdio(proc *process.Process, start *process.StartWatch, log *process.Log, o Options) *Stdio {
	l := &Stdio{duplex: newDuplex(o), proc: proc, log: log, startup: start}
	l.in = process.NewPipeWriter(proc.Stdin, func(err error) { l.end(l.writeError(err)) })
	l.post = func(_ context.Context, msg []byte) error { return l.in.Send(msg) }
	l.tell = l.in.SendOptional
	proc.CopyStderr(log)
	proc.Go(l.read)
	proc.Go(func() {
		if err := start.Watch(l.Done()); err != nil {
			if l.noisy.Load() {
				err = problem.Slowf("%w: it writes lines to its output that are not JSON-RPC, as a program does that is no MCP server over stdio, or that needs another argument; its log has them", err)
			}
			l.end(err)
		}
	})
	return l
}

// read routes what the process writes until its stdout ends.
func (l *Stdio) read() {
	defer l.proc.Stdout.Close()
	lines := wirejson.NewLineReaderIn(l.proc.Stdout, l.Budget.Max(), l.Budget.Until(l.Done()))
	defer lines.Release()
	for {
		line, err := lines.Next()
		why := bounded(l.Budget, err)
		switch {
		case why != err && l.skipLong(line, why):
			continue
		case err != nil:
			l.end(l.readError(why))
			return
		}
		l.heard.Add(1)
		line, kept := owned(line, lines)
		l.take(bytes.TrimSpace(line), kept)
		l.endSkip()
	}
}

// take deals with one line.
func (l *Stdio) take(line []byte, kept bool) {
	line = withoutMark(line)
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
		if i > 0 && split(line[i:], func(m wirejson.Message) { l.route(&m, kept) }) == nil {
			line = line[:i]
		}
	}
	if !l.noisy.Swap(true) {
		l.Reports.Odd("it writes lines to its standard output that are not JSON-RPC messages; its log has them")
	}
	l.log.StdoutLine(line)
}

// skipTime is how long the rest of a line beyond the bound may take.
const skipTime = 5 * time.Second

// skipLong fails the request that a line answers which is not read to its end,
// and lets the rest of the line be skipped, for a while. When the line does not
// say at its beginning what it answers nobody can tell whom to fail: the link
// ends.
func (l *Stdio) skipLong(start []byte, why error) bool {
	id, ok := numericID(wirejson.BrokenAnswer(start[:min(len(start), 256)]))
	if !ok || !l.wait.reject(id, why) {
		return false
	}
	if l.greeted.Load() { // initialize is not to be cancelled
		// As long as it writes this, nothing else gets through.
		l.tell(wirejson.AppendNotification(nil, mcp.Cancelled, fmt.Appendf(nil, `{"requestId":%d,"reason":"the answer is too large"}`, id)))
	}
	l.skipping = true
	return l.proc.Stdout.SetReadDeadline(time.Now().Add(skipTime)) == nil
}

// endSkip ends the time limit of skipLong, but not the one of a process that
// has ended.
func (l *Stdio) endSkip() {
	if !l.skipping {
		return
	}
	l.skipping = false
	l.proc.Stdout.SetReadDeadline(time.Time{})
	select {
	case <-l.proc.Exited(): // it may have set its own just before
		l.proc.Stdout.SetReadDeadline(time.Now().Add(process.DrainTime))
	default:
	}
}

// readError returns why the output ended. When it is the process that ended, its
// status says more than the end of the pipe does.
func (l *Stdio) readError(err error) error {
	if l.skipping {
		return l.Budget.TooLarge()
	}
	if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		if l.proc.WaitExit(nil, process.DrainTime) {
			return l.proc.Status()
		}
		return problem.Ownf("the process has closed its output")
	}
	return err
}

// writeError returns why the input cannot be written.
func (l *Stdio) writeError(err error) error {
	switch {
	case err == process.ErrNotReading:
		return err
	case l.proc.WaitExit(nil, process.DrainTime):
		return l.proc.Status()
	}
	return problem.Ownf("the process has closed its input")
}

// Do implements session.Doer.
func (l *Stdio) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	e, msg, err := l.begin(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	defer putBuffer(msg)
	if err := l.in.Send(*msg); err != nil {
		l.wait.abandon(e)
		select {
		case <-l.Done():
			err = l.Cause()
		case <-ctx.Done():
			err = ctx.Err()
		}
		return session.Reply{}, notSent(err)
	}
	id := e.id
	reply, err := l.wait.wait(ctx, e)
	if err != nil && ctx.Err() != nil && cancelable(r) {
		l.in.Send(cancelled(ctx, strconv.AppendUint(nil, id, 10)))
	}
	return reply, err
}

// Settled ends the watch of the start.
func (l *Stdio) Settled() { l.startup.Done() }

// Health implements Link.
func (l *Stdio) Health() Health {
	h := l.duplex.Health()
	h.PID = l.proc.PID()
	return h
}

// Tidy has nothing to do.
func (l *Stdio) Tidy(time.Time) {}

// Stop ends the process and everything that belongs to the link. A process
// that has broken the connection gets less time.
func (l *Stdio) Stop(hard <-chan struct{}) {
	grace := process.TermGrace
	if l.Cause() != nil {
		grace = process.BrokenGrace
	}
	l.end(ErrStopped)
	done, installs := l.startup.Finish(hard, func(runner string) {
		l.in.Close()
		if !l.proc.HasEnded() {
			l.Reports.Remark("it is stopped when " + runner + " has come to an end with what it installs")
		}
	})
	defer done()
	if installs {
		hard, grace = nil, process.RollbackGrace
	}
	l.proc.Stop(hard, grace, l.in.Close)
}
