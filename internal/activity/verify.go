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
