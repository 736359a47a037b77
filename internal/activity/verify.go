package activity

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// verifier follows the chain through the segments of the spool until it breaks.
type verifier struct {
	last   link
	known  bool  // last is the link before
	until  int64 // the first entry of the next segment
	broken bool  // what follows last does not fit, or is unreadable
}

func (v *verifier) segment(seg segment) error {
	f, err := os.Open(seg.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // pruned meanwhile
	}
	if err != nil {
		return fmt.Errorf("verify the spool: %w", err)
	}
	defer f.Close()
	buf := bufio.NewReaderSize(io.LimitReader(f, seg.size), readBuffer)
	for n := 0; !v.broken; n++ {
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
			v.broken = true
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
	v.broken = !ok || v.known && v.last != at
	v.last, v.known = at, true
}

func (v *verifier) entry(line []byte) {
	h, data, ok := splitLine(line)
	seq, _, placed := placeOf(data)
	if v.broken = !ok || !placed || seq != v.last.seq+1 || chainHash(v.last.hash, data) != h; !v.broken {
		v.last = link{seq, h}
	}
}
