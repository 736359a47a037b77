//go:build unix

package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestPipeWriterOffers: answers to a server's requests are dropped when the server does not read them; messages of a caller are
// not.
func TestPipeWriterOffers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pw := NewPipeWriter(w, func(err error) { t.Errorf("broken: %v", err) })
	answer := []byte(strings.Repeat("x", 1000))
	for range 100_000 {
		pw.SendOptional(answer)
	}
	pw.mu.Lock()
	if n := len(pw.queue); n < maxOptional || n > maxOptional+2*len(answer) {
		t.Errorf("%d bytes wait", n)
	}
	pw.mu.Unlock()
	if err := pw.Send([]byte("last")); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(r); last != "last" && lines.Scan(); {
		last = lines.Text()
	}
	if last != "last" {
		t.Errorf("the last line is %q", last)
	}
	pw.Close()
}

// TestPipeWriter writes from many goroutines to a slow reader: every message
// arrives as one line, those of one goroutine in order.
func TestPipeWriter(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pw := NewPipeWriter(w, func(err error) { t.Errorf("broken: %v", err) })
	const writers, each = 20, 200
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				msg := fmt.Sprintf("{\"g\":%d,\n\"i\":%d,\r\n\"pad\":%q}", g, i, strings.Repeat("x", g*i%3000))
				if err := pw.Send([]byte(msg)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		for { // a goroutine writes the queued messages
			pw.mu.Lock()
			idle := !pw.writing
			pw.mu.Unlock()
			if idle {
				break
			}
		}
		pw.Close()
	}()
	next := map[int]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct{ G, I int }
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		if m.I != next[m.G] {
			t.Fatalf("writer %d: message %d, want %d", m.G, m.I, next[m.G])
		}
		next[m.G]++
	}
	for g := range writers {
		if next[g] != each {
			t.Errorf("writer %d: %d messages", g, next[g])
		}
	}
}

func TestPipeWriterWithoutAReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var told error
	pw := NewPipeWriter(w, func(err error) { told = err })
	big := bytes.Repeat([]byte{'x'}, 1<<20)
	for range 100 {
		if err = pw.Send(big); err != nil {
			break
		}
	}
	if err != ErrNotReading || told != ErrNotReading {
		t.Errorf("error %v, told %v", err, told)
	}
	pw.Close() // ends the write that hangs
	r.Close()
}

func TestPipeWriterWithABrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	pw := NewPipeWriter(w, func(error) { told++ })
	r.Close()
	for range 3 {
		if pw.Send([]byte("x")) == nil {
			t.Error("no error")
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	pw.Close()
}
