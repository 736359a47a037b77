package process

import (
	"errors"
	"os"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// PipeWriter writes lines to the input of a process. A caller that comes while
// somebody writes only leaves its line, so that lines are written together
// under load; the first one writes itself as much as the pipe takes without
// waiting, and a goroutine writes what is left. No caller ever waits for a
// server that does not read.
type PipeWriter struct {
	f      *os.File
	try    func(b []byte) (int, error) // writes without waiting
	broken func(error)                 // told the first error, once

	mu      sync.Mutex // guards what follows
	queue   []byte
	spare   []byte
	writing bool // somebody writes and will look at queue again
	err     error
	wg      sync.WaitGroup
}

// NewPipeWriter returns the writer to f; broken is told the first error.
func NewPipeWriter(f *os.File, broken func(error)) *PipeWriter {
	return &PipeWriter{f: f, try: newTryWrite(f), broken: broken}
}

// Send queues one message as a line and sees to it that it gets written. On an
// error the message has certainly not been written as a whole.
func (w *PipeWriter) Send(msg []byte) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	if len(w.queue)+len(msg) > maxUnwritten {
		w.fail(ErrNotReading)
		return ErrNotReading
	}
	w.queue = append(wirejson.AppendLine(w.queue, msg), '\n')
	if w.writing {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	for round := 0; ; round++ {
		batch := w.swap()
		n := 0
		var err error
		if round < maxRounds {
			w.mu.Unlock()
			n, err = w.try(batch)
			w.mu.Lock()
		}
		switch {
		case err != nil:
			w.fail(err)
			if round > 0 {
				err = nil // ours was in the first batch
			}
			return err
		case n < len(batch):
			w.wg.Add(1)
			go w.drain(batch[n:])
			w.mu.Unlock()
			return nil
		}
		w.keep(batch)
		if len(w.queue) == 0 {
			w.writing = false
			w.mu.Unlock()
			return nil
		}
	}
}

// Offer is Send for what nobody misses: answers to what the server asks. One
// that asks without end and does not read gets none.
func (w *PipeWriter) Offer(msg []byte) {
	w.mu.Lock()
	behind := len(w.queue) >= maxOffered
	w.mu.Unlock()
	if !behind {
		_ = w.Send(msg) // then the link is lost
	}
}

// fail ends the writing. The caller holds mu, and does not any more afterwards.
func (w *PipeWriter) fail(err error) {
	first := w.err == nil
	if first {
		w.err = err
	}
	w.queue, w.spare, w.writing = nil, nil, false
	w.mu.Unlock()
	if first {
		w.broken(err)
	}
}

// Bounds on what waits.
const (
	maxUnwritten = 64 << 20 // bytes for a process that does not read
	maxOffered   = 1 << 20  // and of what is offered
	maxSpare     = 64 << 10 // of a buffer that is used again
)

// ErrNotReading is the end of the writing to a process that does not read.
var ErrNotReading = errors.New("the server does not read its input")

// maxRounds is how often a caller writes what others have queued meanwhile.
const maxRounds = 4

// swap takes the queue. The caller holds mu.
func (w *PipeWriter) swap() []byte {
	batch := w.queue
	w.queue, w.spare = w.spare[:0], nil
	return batch
}

// keep holds a written batch for reuse. The caller holds mu.
func (w *PipeWriter) keep(batch []byte) {
	if cap(batch) <= maxSpare {
		w.spare = batch
	}
}

// drain writes batch, and then whatever has been queued, until nothing is left.
func (w *PipeWriter) drain(batch []byte) {
	defer w.wg.Done()
	for {
		_, err := w.f.Write(batch)
		w.mu.Lock()
		if err != nil {
			w.fail(err)
			return
		}
		if len(w.queue) == 0 {
			w.writing = false
			w.mu.Unlock()
			return
		}
		batch = w.swap()
		w.mu.Unlock()
	}
}

// Close ends the input of the process, and with it a write that hangs.
func (w *PipeWriter) Close() {
	w.f.Close()
	w.wg.Wait()
}
