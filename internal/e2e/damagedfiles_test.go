package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var damagedRounds = flag.Int("damaged", 1, "how often each kind of damaged file is tried; 10 make 110 files")

// template is a data directory with every kind of decision, in one copy as a clean stop leaves it and in one as a crash
// does.
type template struct {
	stopped string
	crashed string
	// config returns a configuration that changes the launch of the server "moved" after its approval.
	config func(url string) string
}

func makeTemplate(t *testing.T) *template {
	t.Helper()
	m := &template{stopped: t.TempDir(), crashed: t.TempDir()}
	u := startUpstream(t, definitionOf("fine", "One."), definitionOf("blocked", "One."), definitionOf("off", "One."), definitionOf("changed", "One."))
	moved := startUpstream(t, definitionOf("tool", "One."))
	m.config = func(url string) string {
		return fmt.Sprintf(`{"mcpServers":{"s":{"url":%q},"moved":{"url":%q,"quarantined":%v}}}`, u.URL, url, url == moved.URL)
	}
	j := judge(t, u, m.config(moved.URL))
	for range 2 { // approve the launch, then the definitions
		eventually(t, "the server is approved", func() error {
			if code, _, stderr := j.cli("upstream", "approve", "moved", "--yes"); code != 0 {
				return fmt.Errorf("%s", stderr)
			}
			return nil
		})
	}
	j.stop()
	j.writeConfig(m.config(moved.URL + "/elsewhere"))
	copyAll(t, j.dir, m.stopped)
	j.start()
	j.awaitTools(judgedTools...)
	j.decide("fine", "disable")
	j.decide("fine", "enable")
	j.kill()
	copyAll(t, j.dir, m.crashed)
	return m
}

func copyAll(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		target := to + strings.TrimPrefix(path, from)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular(): // the socket
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// damage changes the files of a data directory.
type damage struct {
	name    string
	crashed bool // damages the files of a killed daemon
	do      func(rnd *rand.Rand, path string) error
}

func damages() []damage {
	const page = 4096
	change := func(suffix string, edit func(rnd *rand.Rand, b []byte) []byte) func(*rand.Rand, string) error {
		return func(rnd *rand.Rand, path string) error {
			b, err := os.ReadFile(path + suffix)
			if err != nil || len(b) == 0 {
				return fmt.Errorf("nothing to damage: %w", err)
			}
			return os.WriteFile(path+suffix, edit(rnd, b), 0o600)
		}
	}
	flips := func(n, within int) func(rnd *rand.Rand, b []byte) []byte {
		return func(rnd *rand.Rand, b []byte) []byte {
			for range n {
				b[rnd.IntN(min(len(b), within))] ^= 1 << rnd.IntN(8)
			}
			return b
		}
	}
	cut := func(rnd *rand.Rand, b []byte) []byte { return b[:rnd.IntN(len(b))] }
	onePage := func(fill func(rnd *rand.Rand) byte) func(rnd *rand.Rand, b []byte) []byte {
		return func(rnd *rand.Rand, b []byte) []byte {
			at := rnd.IntN(len(b)/page) * page
			for i := range page {
				b[at+i] = fill(rnd)
			}
			return b
		}
	}
	home := func(rnd *rand.Rand, path string) error {
		path = filepath.Join(filepath.Dir(path), "restrictions.log")
		return []func() error{
			func() error { return os.Remove(path) },
			func() error { return change("", flips(3, 1<<20))(rnd, path) },
			func() error { return change("", cut)(rnd, path) },
		}[rnd.IntN(3)]()
	}
	both := func(rnd *rand.Rand, path string) error {
		if err := home(rnd, path); err != nil {
			return err
		}
		return change("", cut)(rnd, path)
	}
	return []damage{
		{"flipped bits", false, change("", flips(20, 1<<30))},
		{"flipped bits in the head", false, change("", flips(3, page))},
		{"cut off", false, change("", cut)},
		{"a page of zeros", false, change("", onePage(func(*rand.Rand) byte { return 0 }))},
		{"a random page", false, change("", onePage(func(rnd *rand.Rand) byte { return byte(rnd.Uint32()) }))},
		{"a newer version", false, change("", newer)},
		{"a foreign file", false, change("", foreign)},
		{"a damaged log", true, change("-wal", func(rnd *rand.Rand, b []byte) []byte {
			if rnd.IntN(2) == 0 {
				return cut(rnd, b)
			}
			return flips(10, 1<<30)(rnd, b)
		})},
		{"a missing log", true, func(rnd *rand.Rand, path string) error {
			return os.Remove(path + []string{"-wal", "-shm"}[rnd.IntN(2)])
		}},
		{"a damaged second home", false, home},
		{"both damaged", false, both},
	}
}

// migrated matches a row of the schema version table as SQLite stores it: a header, the version in one byte, the time.
var migrated = regexp.MustCompile(`\x05\x00\x01\x09\x33[\x01-\x20]20\d\d-`)

// newer makes the database look like one of a newer version.
func newer(_ *rand.Rand, b []byte) []byte {
	if rows := migrated.FindAllIndex(b, -1); len(rows) > 0 {
		b[rows[0][0]+5] = 99
	}
	return b
}

// foreign replaces the database by a file of another kind.
func foreign(rnd *rand.Rand, b []byte) []byte {
	const version, application = 19, 68 // offsets in the SQLite header
	switch rnd.IntN(3) {
	case 0:
		return bytes.Repeat([]byte("hello "), rnd.IntN(5000))
	case 1:
		b[application]++
	default:
		b[version] = 9
	}
	return b
}

// The real daemon starts with files that are damaged in every way. It works, or clearly reports the problem. No tool
// can be called and no server is contacted that could not be before. A later approval of the server unlocks nothing
// that a user blocked or disabled, unless both stores were lost. In that case the daemon reports the loss.
func TestDamagedFilesGrantNothing(t *testing.T) {
	t.Parallel()
	m := makeTemplate(t)
	places, all := make(chan struct{}, 6), sync.WaitGroup{} // they mostly wait
	for round := range uint64(*damagedRounds) {
		for _, d := range damages() {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				t.Run(fmt.Sprint(d.name, " ", round), func(t *testing.T) { m.try(t, d, round) })
			})
		}
	}
	all.Wait()
}

func (m *template) try(t *testing.T, d damage, seed uint64) {
	from := m.stopped
	if d.crashed {
		from = m.crashed
	}
	j := &judged{t: t, daemon: &daemon{t: t, dir: t.TempDir(), address: freeAddress(t)}}
	t.Cleanup(func() {
		if t.Failed() && j.stderr != nil {
			t.Logf("stderr of the daemon:\n%s", j.stderr)
		}
	})
	copyAll(t, from, j.dir)
	var contacts atomic.Int64
	moved, count := startUpstream(t, definitionOf("tool", "One.")), func(string) { contacts.Add(1) }
	moved.before.Store(&count)
	j.writeConfig(m.config(moved.URL))
	if err := d.do(rand.New(rand.NewPCG(seed, 11)), j.database()); err != nil {
		t.Fatal(err)
	}
	j.start()
	readable := j.settled()
	j.refuses("started", "s:blocked", "s:off", "s:changed", "moved:tool")
	outcome := j.said()
	if readable {
		_, _, _ = j.cli("upstream", "approve", "s", "--yes") // there may be nothing to approve
	}
	j.stillRefuses("approved")
	j.kill()
	j.check()
	j.start()
	j.settled()
	j.stillRefuses("restarted")
	if n := contacts.Load(); n > 0 && !j.restrictionsLost() {
		t.Errorf("a server whose launch no one has approved was contacted %d times", n)
	}
	j.stop()
	j.check()
	t.Log(outcome)
}

// settled waits until the decisions are read, or are known to be unreadable.
func (j *judged) settled() (readable bool) {
	j.t.Helper()
	eventually(j.t, "the decisions are loaded", func() error {
		status, body := j.rest("GET", "/status", "")
		newer := strings.Contains(string(body), "this program supports up to")
		if readable = !strings.Contains(string(body), "approvals are not read yet"); readable || newer {
			return nil
		}
		return fmt.Errorf("%d %s", status, body)
	})
	if readable {
		j.awaitTools("s:blocked", "s:off")
		eventually(j.t, "the server is contacted", func() error {
			status, body := j.rest("GET", "/servers/s", "")
			if status != http.StatusOK || !strings.Contains(string(body), `"state":"ready"`) {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		})
	}
	return readable
}

func (j *judged) refuses(when string, names ...string) {
	j.t.Helper()
	a := j.legacy()
	for _, name := range names {
		if r := a.call("call_tool_destructive", `{"name":"`+name+`"}`); !r.IsError {
			j.t.Errorf("%s: %s was called", when, name)
		}
	}
}

// stillRefuses checks that tools stay locked that no approval of a server unlocks. If both stores of restrictions were
// lost, it checks that the daemon reports this.
func (j *judged) stillRefuses(when string) {
	j.t.Helper()
	j.refuses(when, "moved:tool")
	if !j.restrictionsLost() {
		j.refuses(when, "s:blocked", "s:off")
	}
}

// restrictionsLost reports whether the daemon tells the user that both stores of restrictions were lost.
func (j *judged) restrictionsLost() bool {
	_, body := j.rest("GET", "/status", "")
	return strings.Contains(string(body), "Earlier blocks are lost")
}

// said returns the messages for the user.
func (j *judged) said() string {
	_, body := j.rest("GET", "/status", "")
	return fmt.Sprintf("%d files aside; %s", len(j.aside()), body)
}

// check fails if the daemon panicked.
func (j *judged) check() {
	j.t.Helper()
	if said := j.stderr.String(); strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
		j.t.Errorf("the daemon panicked:\n%s", said)
	}
}
