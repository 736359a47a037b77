package activity

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Health is how the log is. Degraded means that records cannot be written, or
// that the database is away and they wait in the spool.
type Health struct {
	Degraded bool   `json:"degraded"`
	Message  string `json:"message,omitempty"`
	Backlog  int64  `json:"backlog"`     // entries that are not in the database yet
	Spool    int64  `json:"spool_bytes"` // size of the spool on disk
}

// Health says how the log is. It waits for nothing.
func (l *Log) Health() Health {
	l.spool.mu.Lock()
	h := Health{Backlog: l.spool.durable.seq - l.spool.projected, Spool: l.spool.bytes()}
	failure, full := l.spool.failure, h.Spool >= l.spool.maxBytes
	l.spool.mu.Unlock()
	l.mu.Lock()
	storeErr, waiting := l.storeErr, len(l.unwritten)
	l.mu.Unlock()
	switch {
	case failure != nil:
		h.Message = fmt.Sprintf("records cannot be written: %v", failure)
	case full:
		h.Message = fmt.Sprintf("records cannot be written: the spool has reached its limit of %d bytes", l.spool.maxBytes)
	case waiting > 0:
		h.Message = fmt.Sprintf("%d outcomes wait to be written", waiting)
	case storeErr != nil:
		h.Message = fmt.Sprintf("the database is not available, records wait in the spool: %v", storeErr)
	}
	h.Degraded = h.Message != ""
	return h
}

// Verification is the result of Verify.
type Verification struct {
	Entries int64  `json:"entries"`
	First   int64  `json:"first"` // numbers of the first and the last entry
	Last    int64  `json:"last"`
	Break   string `json:"break,omitempty"` // where the chain is broken first; empty when it is whole
}

// Verify checks the chain of what is in the spool.
func (l *Log) Verify(ctx context.Context) (Verification, error) {
	m := l.spool.mark()
	v := &verifier{}
	for _, seg := range m.segments {
		v.until = m.after(seg.first)
		if err := v.segment(ctx, seg); err != nil {
			return v.Verification, err
		}
		if v.Break != "" {
			break
		}
	}
	if v.Break == "" && len(m.segments) > 0 && v.last != (link{m.end.Seq, m.end.Hash}) {
		v.Break = fmt.Sprintf("the spool ends with entry %d, not with %d", v.last.seq, m.end.Seq)
	}
	return v.Verification, nil
}

type verifier struct {
	Verification
	last  link
	known bool  // last is the link before
	until int64 // the first entry of the next segment
}

func (v *verifier) segment(ctx context.Context, seg segment) error {
	f, err := os.Open(seg.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // pruned meanwhile
	}
	if err != nil {
		return fmt.Errorf("verify the spool: %w", err)
	}
	defer f.Close()
	buf := bufio.NewReaderSize(io.LimitReader(f, seg.size), readBuffer)
	for n := 0; v.Break == ""; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := buf.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("verify the spool: %w", err)
		}
		body, whole := bytes.CutSuffix(line, []byte{'\n'})
		switch {
		case n > 0 && v.last.seq+1 == v.until:
			return nil // what follows is the rest of a write that has failed
		case !whole:
			v.Break = fmt.Sprintf("the line after entry %d is torn", v.last.seq)
		case n == 0:
			v.header(body)
		default:
			v.entry(body)
		}
	}
	return nil
}

func (v *verifier) header(line []byte) {
	h, prev, ok := parseHeader(line)
	at := link{h.First - 1, prev}
	switch {
	case !ok:
		v.Break = fmt.Sprintf("the header of the segment after entry %d is unreadable", v.last.seq)
	case v.known && v.last != at:
		v.Break = fmt.Sprintf("the segment that begins with entry %d does not continue entry %d", h.First, v.last.seq)
	}
	v.last, v.known = at, true
}

func (v *verifier) entry(line []byte) {
	h, data, ok := splitLine(line)
	seq, _, placed := placeOf(data)
	switch {
	case !ok || !placed:
		v.Break = fmt.Sprintf("the line after entry %d is no entry", v.last.seq)
	case seq != v.last.seq+1:
		v.Break = fmt.Sprintf("entry %d follows entry %d", seq, v.last.seq)
	case chainHash(v.last.hash, data) != h:
		v.Break = fmt.Sprintf("entry %d does not have the hash that it must have after entry %d", seq, v.last.seq)
	}
	if v.Break != "" {
		return
	}
	if v.Entries == 0 {
		v.First = seq
	}
	v.Entries++
	v.last = link{seq, h}
	v.Last = seq
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
