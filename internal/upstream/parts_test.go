//go:build unix

package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/jsonrpc"
)

func TestEnvironment(t *testing.T) {
	all := []string{"PATH=/bin", "HOME=/h", "AWS_SECRET_ACCESS_KEY=x", "LC_ALL=C", "XDG_DATA_HOME=/d", "PATHS=1",
		"path=/lower", "LD_PRELOAD=evil", "TZ=UTC", "broken", "=x", "MCPPROXY_API_KEY=k"}
	got := environment(all, map[string]string{"TOKEN": "t", "HOME": "/other", "EMPTY": ""}, "linux")
	want := []string{"EMPTY=", "HOME=/other", "LC_ALL=C", "PATH=/bin", "TOKEN=t", "TZ=UTC", "XDG_DATA_HOME=/d"}
	if !slices.Equal(got, want) {
		t.Errorf("linux: %q", got)
	}
	got = environment([]string{"Path=C:\\", "SystemRoot=C:\\Windows", "SECRET=x"}, map[string]string{"PATH": "D:\\"}, "windows")
	if want := []string{"PATH=D:\\", "SystemRoot=C:\\Windows"}; !slices.Equal(got, want) {
		t.Errorf("windows: %q", got)
	}
}

func TestLookIn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tool")
	os.WriteFile(file, nil, 0o755)
	os.WriteFile(filepath.Join(dir, "text"), nil, 0o644)
	path := "relative:/nonexistent:" + dir
	for command, want := range map[string]string{"tool": file, "text": "", "absent": "", "./tool": ""} {
		if got := lookIn(command, path); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestServerLogRotates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	l := newServerLog(dir, "s", masker{})
	now := time.Unix(0, 0)
	l.now = func() time.Time { now = now.Add(time.Second); return now }
	line := strings.Repeat("x", 1023) + "\n"
	for range 12 << 10 {
		l.Write([]byte(line))
	}
	l.Write([]byte("last\n"))
	l.close()
	total := int64(0)
	for _, name := range []string{"s.log", "s.log.1"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() > maxLogFile || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
		total += info.Size()
	}
	if total < maxLogFile {
		t.Errorf("%d bytes are kept", total)
	}
	lines, err := tailLog(dir, "s", 2)
	if err != nil || len(lines) != 2 || lines[1] != "last" || lines[0] != line[:len(line)-1] {
		t.Errorf("tail %q, error %v", lines, err)
	}
}

func TestServerLogLimitsAFlood(t *testing.T) {
	dir := t.TempDir()
	l := newServerLog(dir, "s", masker{})
	now := time.Unix(1000, 0)
	l.now = func() time.Time { return now }
	for range 100 {
		l.Write(bytes.Repeat([]byte("flood line\n"), 10_000))
	}
	if !l.full() {
		t.Error("the log takes more")
	}
	now = now.Add(time.Second)
	if l.Write([]byte("quiet again\n")); l.full() {
		t.Error("the log takes no more")
	}
	l.close()
	b, err := os.ReadFile(filepath.Join(dir, "s.log"))
	if err != nil || len(b) > logBurst+200 || !bytes.Contains(b, []byte("bytes were left out")) || !bytes.HasSuffix(b, []byte("quiet again\n")) {
		t.Errorf("%d bytes, error %v", len(b), err)
	}
}

// TestBrokenAnswers: one that cannot be read ends its request a while later, if
// nothing better comes, and the server counts as still at work on it.
func TestBrokenAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const broken = `{"jsonrpc":"2.0","id":%d,"result":{"a":`
		p := newPending()
		ask := func(id uint64, owner *sharedLink) *entry {
			e, err := p.add(&request{id: id, owner: owner, say: func(Event) {}})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		wait := func(e *entry) (string, error) {
			reply, err := p.wait(t.Context(), e)
			return string(reply.Result), err
		}
		first, second, third := ask(1, &sharedLink{}), ask(2, &sharedLink{}), ask(3, &sharedLink{})
		for range 2 {
			p.rejectBroken(fmt.Appendf(nil, broken, 1))
			p.rejectBroken(fmt.Appendf(nil, broken, 2))
		}
		p.resolve(&jsonrpc.Message{ID: json.RawMessage("2"), Result: json.RawMessage(`{"b":2}`)}, false)
		began := time.Now()
		if _, err := wait(first); !errors.Is(err, errNoMessage) || time.Since(began) != brokenTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if got, err := wait(second); err != nil || got != `{"b":2}` {
			t.Errorf("%s, %v", got, err)
		}
		if p.message(json.RawMessage(`{"level":"info","data":"about the first"}`)) {
			t.Error("a message that may be about the first request goes to another client")
		}
		p.rejectBroken(fmt.Appendf(nil, broken, 3))
		p.fail(errStopped)
		if _, err := wait(third); errors.Is(err, errNoMessage) || !errors.Is(err, errStopped) {
			t.Errorf("the end of the link says more: %v", err)
		}
	})
}

// TestStartsAfterACrash: the first client that begins anew does not wait, the
// others come one after the other, and a while later nobody waits.
func TestStartsAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talks talks
		starts := func(n int) (after []time.Duration) {
			began := time.Now()
			for range n {
				go func() {
					if err := talks.turn(t.Context()); err != nil {
						t.Error(err)
					}
					talks.mu.Lock()
					defer talks.mu.Unlock()
					after = append(after, time.Since(began))
				}()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			return after
		}
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("before any crash: %v", got)
		}
		talks.fell()
		if got := starts(3); !slices.Equal(got, []time.Duration{0, startPause, 2 * startPause}) {
			t.Errorf("after a crash: %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startPause/2)
		defer cancel()
		if first, second := talks.turn(ctx), talks.turn(ctx); first != nil || !errors.Is(second, context.DeadlineExceeded) {
			t.Errorf("with little time: %v, %v", first, second)
		}
		time.Sleep(crashTime)
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("long after a crash: %v", got)
		}
	})
}

func TestTailLogWithoutALog(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if lines, err := tailLog(dir, "s", 10); lines != nil || err != nil {
			t.Errorf("%q: %q, error %v", dir, lines, err)
		}
	}
	if _, err := tailLog(t.TempDir(), "../../etc/passwd", 10); err == nil {
		t.Error("it leaves its directory")
	}
}

// TestPipeWriterOffers: answers to what a server asks are dropped when it does
// not read them, and what a caller sends is not.
func TestPipeWriterOffers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pw := newPipeWriter(w, func(err error) { t.Errorf("broken: %v", err) })
	answer := []byte(strings.Repeat("x", 1000))
	for range 100_000 {
		pw.offer(answer)
	}
	pw.mu.Lock()
	if n := len(pw.queue); n < maxOffered || n > maxOffered+2*len(answer) {
		t.Errorf("%d bytes wait", n)
	}
	pw.mu.Unlock()
	if err := pw.send([]byte("last")); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(r); last != "last" && lines.Scan(); {
		last = lines.Text()
	}
	if last != "last" {
		t.Errorf("the last line is %q", last)
	}
	pw.close()
}

// TestPipeWriter writes from many goroutines to a slow reader: every message
// arrives as one line, those of one goroutine in order.
func TestPipeWriter(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pw := newPipeWriter(w, func(err error) { t.Errorf("broken: %v", err) })
	const writers, each = 20, 200
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				msg := fmt.Sprintf("{\"g\":%d,\n\"i\":%d,\r\n\"pad\":%q}", g, i, strings.Repeat("x", g*i%3000))
				if err := pw.send([]byte(msg)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		for { // what is queued is written by a goroutine
			pw.mu.Lock()
			idle := !pw.writing
			pw.mu.Unlock()
			if idle {
				break
			}
		}
		pw.close()
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
	pw := newPipeWriter(w, func(err error) { told = err })
	big := bytes.Repeat([]byte{'x'}, 1<<20)
	for range 100 {
		if err = pw.send(big); err != nil {
			break
		}
	}
	if err != errNotReading || told != errNotReading {
		t.Errorf("error %v, told %v", err, told)
	}
	pw.close() // ends the write that hangs
	r.Close()
}

func TestPipeWriterWithABrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	pw := newPipeWriter(w, func(error) { told++ })
	r.Close()
	for range 3 {
		if pw.send([]byte("x")) == nil {
			t.Error("no error")
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	pw.close()
}

func TestPendingIsBounded(t *testing.T) {
	p := newPending()
	got := 0
	e, err := p.add(&request{id: 1, token: json.RawMessage("1"), notify: func(string, json.RawMessage) { got++ }})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * maxNotes {
		p.progress(json.RawMessage(`{"progressToken":1}`))
	}
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", maxNoteBytes) + `"}`)
	p.message(big)
	p.resolve(&jsonrpc.Message{ID: json.RawMessage("1"), Result: json.RawMessage("{}")}, false)
	if r, err := p.wait(t.Context(), e); err != nil || string(r.Result) != "{}" {
		t.Errorf("result %s, error %v", r.Result, err)
	}
	if got != maxNotes {
		t.Errorf("%d notifications", got)
	}
}

func TestPendingIgnoresStrangeIDs(t *testing.T) {
	p := newPending()
	e, err := p.add(&request{id: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{`"7"`, `7.0`, `-7`, `07x`, `null`, ``, `8`, `99999999999999999999999`} {
		p.resolve(&jsonrpc.Message{ID: json.RawMessage(id), Result: json.RawMessage("{}")}, false)
	}
	if p.count.Load() != 1 {
		t.Error("it has been resolved")
	}
	p.fail(errors.New("over"))
	if _, err := p.wait(context.Background(), e); err == nil {
		t.Error("no error")
	}
	if _, err := p.add(&request{id: 8}); !unsent(err) {
		t.Errorf("error %v", err)
	}
}

func TestAppendCall(t *testing.T) {
	tests := []struct{ call, want, token string }{
		{`{"Tool":"a"}`, `{"name":"a"}`, ""},
		{`{"Tool":"a","Arguments":{"x":[1, 2]}}`, `{"name":"a","arguments":{"x":[1, 2]}}`, ""},
		{`{"Tool":"a\"b\\c\u0001é","Meta":{}}`, `{"name":"a\"b\\c\u0001é","_meta":{}}`, ""},
		{`{"Tool":"a","Meta":{"progressToken":"t","x":1}}`, `{"name":"a","_meta":{"progressToken":5,"x":1}}`, `"t"`},
		{`{"Tool":"a","Meta":{"progressToken":0}}`, `{"name":"a","_meta":{"progressToken":5}}`, `0`},
	}
	for _, tt := range tests {
		var c Call
		in := struct {
			Tool            string
			Arguments, Meta json.RawMessage
		}{}
		if err := json.Unmarshal([]byte(tt.call), &in); err != nil {
			t.Fatal(err)
		}
		c.Tool, c.Arguments, c.Meta = in.Tool, in.Arguments, in.Meta
		msg, token := appendCall(nil, 5, &c)
		if want := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":` + tt.want + `}`; string(msg) != want || string(token) != tt.token {
			t.Errorf("%s, token %s; want %s", msg, token, want)
		}
	}
}

func TestReadGreeting(t *testing.T) {
	bad := []string{`[]`, `null`, `{}`, `{"protocolVersion":1}`, `{"protocolVersion":"2030-01-01"}`, `{"ProtocolVersion":"2025-11-25"}`}
	for _, raw := range bad {
		if g, err := readGreeting(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: %+v", raw, g)
		}
	}
	for _, v := range spoken() {
		g, err := readGreeting(json.RawMessage(`{"protocolVersion":"` + v + `","capabilities":{"tools":{}},"instructions":5}`))
		if err != nil || g.version != v || !g.hasTools || g.saysChanges || g.instructions != "" {
			t.Errorf("%s: %+v, error %v", v, g, err)
		}
	}
}
