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

// StdioLink is a process that exchanges lines over its pipes. One goroutine reads its stdout and passes each
// response to the goroutine that waits for it.
type StdioLink struct {
	*duplex
	proc *process.Process
	in   *process.PipeWriter
	log  *process.Log

	startup  *process.StartWatch
	skipping bool        // used by the reader: skips a line
	noisy    atomic.Bool // the process has written a line that is not a message
}

// NewStdioLink returns the link of a process that has just started. It sends nothing.
func NewStdioLink(proc *process.Process, start *process.StartWatch, log *process.Log, o LinkOptions) *StdioLink {
	l := &StdioLink{duplex: newDuplex(o), proc: proc, log: log, startup: start}
	l.in = process.NewPipeWriter(proc.Stdin, func(err error) { l.endLink(l.toWriteError(err)) })
	l.post = func(_ context.Context, msg []byte) error { return l.in.Send(msg) }
	l.postLater = l.in.SendOptional
	l.allowQuestions()
	proc.CopyStderr(log)
	proc.Go(l.readOutput)
	proc.Go(func() {
		if err := start.WatchUntilReady(l.Done()); err != nil {
			if l.noisy.Load() {
				err = problem.TrustedTextTimeoutErrorf("%w: it writes lines to stdout that are not JSON-RPC (see its log), so it may not be a stdio MCP server, or may need another argument", err)
			}
			l.endLink(err)
		}
	})
	return l
}

// readOutput routes the process's output until stdout ends.
func (l *StdioLink) readOutput() {
	defer l.proc.Stdout.Close()
	lines := wirejson.NewLineReaderWithPool(l.proc.Stdout, l.Budget.MaxMessage(), l.Budget.ForReader(l.Done()))
	defer lines.Release()
	for {
		line, err := lines.Next()
		why := toBudgetError(l.Budget, err)
		switch {
		case why != err && l.rejectTooLongReply(line, why):
			continue
		case err != nil:
			l.endLink(l.toReadError(why))
			return
		}
		l.received.Add(1)
		line, kept := takeOwnership(line, lines)
		l.handleLine(bytes.TrimSpace(line), kept)
		l.endSkipping()
	}
}

// handleLine handles one line.
func (l *StdioLink) handleLine(line []byte, kept bool) {
	line = trimByteOrderMark(line)
	if len(line) == 0 {
		return
	}
	if c := line[0]; (c == '{' || c == '[') && l.parseAndRoute(line, kept) {
		return
	}
	// Before the answer to initialize, a banner without a line end may precede a message. Later, text before a message
	// may be data that contains a message.
	if !l.agreed.Load() {
		i := bytes.LastIndex(line, []byte(`{"jsonrpc"`))
		if i > 0 && eachMessage(line[i:], func(m wirejson.Message) { l.routeMessage(&m, kept) }) == nil {
			line = line[:i]
		}
	}
	if !l.noisy.Swap(true) {
		l.Reports.ProtocolViolation("it writes lines to its standard output that are not JSON-RPC messages; its log has them")
	}
	l.log.WriteStdoutLine(line)
}

// skipTime is the time limit for the rest of a line over the limit.
const skipTime = 5 * time.Second

// rejectTooLongReply fails the request that a line over the limit answers, and skips the rest of the line. If the
// beginning of the line does not contain the request's ID, the link ends.
func (l *StdioLink) rejectTooLongReply(start []byte, why error) bool {
	id, ok := parseNumericID(wirejson.MalformedResponseID(start[:min(len(start), 256)]))
	if !ok || !l.pending.rejectRequest(id, why) {
		return false
	}
	if l.agreed.Load() { // initialize must not be cancelled
		// No other message arrives until the line ends.
		l.postLater(wirejson.AppendNotification(nil, mcp.Cancelled, fmt.Appendf(nil, `{"requestId":%d,"reason":"the answer is too large"}`, id)))
	}
	l.skipping = true
	return l.proc.Stdout.SetReadDeadline(time.Now().Add(skipTime)) == nil
}

// endSkipping removes the time limit of rejectTooLongReply, but not the time limit for a process that has ended.
func (l *StdioLink) endSkipping() {
	if !l.skipping {
		return
	}
	l.skipping = false
	l.proc.Stdout.SetReadDeadline(time.Time{})
	select {
	case <-l.proc.Exited(): // the exit may have set its own deadline just before
		l.proc.Stdout.SetReadDeadline(time.Now().Add(process.DrainTime))
	default:
	}
}

// toReadError returns the reason why the output ended. The exit status of the process explains more than the end of the
// pipe.
func (l *StdioLink) toReadError(err error) error {
	if l.skipping {
		return l.Budget.tooLargeErrorAndThrottle()
	}
	if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		if l.proc.WaitExit(nil, process.DrainTime) {
			return l.proc.ExitStatus()
		}
		return problem.TrustedTextErrorf("the process has closed its output")
	}
	return err
}

// toWriteError returns the reason why the input cannot be written.
func (l *StdioLink) toWriteError(err error) error {
	switch {
	case err == process.ErrNotReading:
		return err
	case l.proc.WaitExit(nil, process.DrainTime):
		return l.proc.ExitStatus()
	}
	return problem.TrustedTextErrorf("the process has closed its input")
}

// Do implements session.Doer.
func (l *StdioLink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	e, msg, err := l.registerAndEncodeRequest(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	defer putEncodeBuffer(msg)
	if err := l.in.Send(*msg); err != nil {
		l.pending.abandonUnsent(e)
		select {
		case <-l.Done():
			err = l.Cause()
		case <-ctx.Done():
			err = ctx.Err()
		}
		return session.Reply{}, newNotSentError(err)
	}
	id := e.id
	reply, err := l.pending.waitForReply(ctx, e)
	if err != nil && ctx.Err() != nil && isCancelable(r) {
		l.in.Send(newCancelNotification(ctx, strconv.AppendUint(nil, id, 10)))
	}
	return reply, err
}

// MarkStartComplete ends the start watch.
func (l *StdioLink) MarkStartComplete() { l.startup.MarkReady() }

// Health implements Link.
func (l *StdioLink) Health() LinkHealth {
	h := l.duplex.Health()
	h.PID = l.proc.PID()
	return h
}

// CloseIdle does nothing.
func (l *StdioLink) CloseIdle(time.Time) {}

// Stop ends the process and the link. A process that has broken the protocol gets less time.
func (l *StdioLink) Stop(hard <-chan struct{}) {
	grace := process.TermGrace
	if l.Cause() != nil {
		grace = process.BrokenGrace
	}
	l.endLink(ErrStopped)
	done, installs := l.startup.LetInstallFinish(hard, func(runner string) {
		l.in.Close()
		if !l.proc.HasEnded() {
			l.Reports.Log("it is stopped when " + runner + " has finished its installation")
		}
	})
	defer done()
	if installs {
		hard, grace = nil, process.RollbackGrace
	}
	l.proc.Stop(hard, grace, l.in.Close)
}
