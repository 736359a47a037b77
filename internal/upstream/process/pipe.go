package process

import (
	"errors"
	"os"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// PipeWriter writes lines to the input of a process without blocking callers. The first
// caller writes as much as the pipe takes, a goroutine writes the rest. Callers that come
// at the same time only queue their line, so that lines are batched under load.
type PipeWriter struct {
	f                *os.File
	writeNonblocking func(b []byte) (int, error) // returns instead of blocking
	onError          func(error)                 // called with the first error, once

	mu      sync.Mutex // guards the fields below
	queue   []byte
	spare   []byte
	writing bool // a writer is active and will check queue again
	err     error
	wg      sync.WaitGroup
}

// NewPipeWriter returns a writer to f; broken receives the first error.
func NewPipeWriter(f *os.File, broken func(error)) *PipeWriter {
	return &PipeWriter{f: f, writeNonblocking: newNonblockingWriteFunc(f), onError: broken}
}

// Send queues a message as a line and ensures that it is written. After an error the
// message was not written in full.
func (w *PipeWriter) Send(msg []byte) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	if len(w.queue)+len(msg) > maxUnwritten {
		w.failAndUnlock(ErrNotReading)
		return ErrNotReading
	}
	w.queue = append(wirejson.AppendAsOneLine(w.queue, msg), '\n')
	if w.writing {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	for round := 0; ; round++ {
		batch := w.takeQueue()
		n := 0
		var err error
		if round < maxRounds {
			w.mu.Unlock()
			n, err = w.writeNonblocking(batch)
			w.mu.Lock()
		}
		switch {
		case err != nil:
			w.failAndUnlock(err)
			if round > 0 {
				err = nil // this message was in the first batch
			}
			return err
		case n < len(batch):
			w.wg.Add(1)
			go w.writeQueue(batch[n:])
			w.mu.Unlock()
			return nil
		}
		w.recycle(batch)
		if len(w.queue) == 0 {
			w.writing = false
			w.mu.Unlock()
			return nil
		}
	}
}

// SendOptional is Send for messages that may be dropped: answers to the server's requests. A server that sends requests
// without end and does not read gets no answers.
func (w *PipeWriter) SendOptional(msg []byte) {
	w.mu.Lock()
	behind := len(w.queue) >= maxOptional
	w.mu.Unlock()
	if !behind {
		_ = w.Send(msg) // on an error the link is lost
	}
}

// failAndUnlock ends the writer. It must be called with mu held, and releases it.
func (w *PipeWriter) failAndUnlock(err error) {
	first := w.err == nil
	if first {
		w.err = err
	}
	w.queue, w.spare, w.writing = nil, nil, false
	w.mu.Unlock()
	if first {
		w.onError(err)
	}
}

// Bounds on queued data.
const (
	maxUnwritten = 64 << 20 // bytes for a process that does not read
	maxOptional  = 1 << 20  // of those, for optional messages
	maxSpare     = 64 << 10 // capacity of a reused buffer
)

// ErrNotReading means that the process does not read its input.
var ErrNotReading = errors.New("the server does not read its input")

// maxRounds bounds how often a caller writes the lines of others.
const maxRounds = 4

// takeQueue returns and clears the queue. The caller holds mu.
func (w *PipeWriter) takeQueue() []byte {
	batch := w.queue
	w.queue, w.spare = w.spare[:0], nil
	return batch
}

// recycle keeps a written batch for reuse. The caller holds mu.
func (w *PipeWriter) recycle(batch []byte) {
	if cap(batch) <= maxSpare {
		w.spare = batch
	}
}

// writeQueue writes batch and then the queue until it is empty.
func (w *PipeWriter) writeQueue(batch []byte) {
	defer w.wg.Done()
	for {
		_, err := w.f.Write(batch)
		w.mu.Lock()
		if err != nil {
			w.failAndUnlock(err)
			return
		}
		if len(w.queue) == 0 {
			w.writing = false
			w.mu.Unlock()
			return
		}
		batch = w.takeQueue()
		w.mu.Unlock()
	}
}

// Close closes the input of the process, which also ends a blocked write.
func (w *PipeWriter) Close() {
	w.f.Close()
	w.wg.Wait()
}
