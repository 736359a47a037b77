//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// balancer sends each request to the next backend, and to the one after when nothing
// listens there. It knows nothing of MCP.
type balancer struct {
	*httptest.Server
	backends []string
	turn     atomic.Int64
	client   http.Client
}

func startBalancer(t *testing.T, daemons []*daemon) *balancer {
	b := &balancer{client: http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, d := range daemons {
		b.backends = append(b.backends, d.address)
	}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	turn := int(b.turn.Add(1)) // other requests take their turns in between
	for i := range b.backends {
		if err != nil {
			break
		}
		to := b.backends[(turn+i)%len(b.backends)]
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, "http://"+to+r.URL.RequestURI(), bytes.NewReader(body))
		req.Header = r.Header.Clone()
		var resp *http.Response
		if resp, err = b.client.Do(req); err == nil {
			defer resp.Body.Close()
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
			return
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		err = nil
	}
	http.Error(w, fmt.Sprint("no backend: ", err), http.StatusBadGateway)
}

// errLost is that the instance was gone before it answered.
var errLost = errors.New("lost")

// callModern makes a call as a client of the modern revision does, whose id is the mark.
func callModern(client *http.Client, address, mark string) error {
	params := modernParams(fmt.Sprintf(`"name":"call_tool_read","arguments":{"name":"m:note","args":{"mark":%q}}`, mark), "")
	req, err := http.NewRequest(http.MethodPost, address+"/mcp", strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{%s}}`, mark, params)))
	if err != nil {
		return err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "call_tool_read"} {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.Join(errLost, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil, resp.StatusCode == http.StatusBadGateway:
		return errors.Join(errLost, err, errors.New(string(text)))
	case resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(mark)) || bytes.Contains(text, []byte(`"isError":true`)):
		return fmt.Errorf("%s: %.300s", resp.Status, text)
	}
	return nil
}

// marksOf returns how often calls with each mark are in the log as successful, by pages.
func marksOf(d *daemon) (map[string]int, error) {
	d.t.Helper()
	found, cursor, before := map[string]int{}, "", "~"
	for {
		var page struct {
			Activities []struct {
				ID        string `json:"id"`
				RequestID string `json:"request_id"`
			} `json:"activities"`
			NextCursor string `json:"next_cursor"`
		}
		status, body := d.rest(http.MethodGet, "/activity?limit=1000&type=tool_call&status=success&cursor="+url.QueryEscape(cursor), "")
		if err := json.Unmarshal(body, &page); err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("%d %v: %.300s", status, err, body)
		}
		for _, r := range page.Activities {
			if r.ID >= before {
				return nil, fmt.Errorf("%s comes after %s", r.ID, before)
			}
			before = r.ID
			found[r.RequestID]++
		}
		if cursor = page.NextCursor; cursor == "" {
			return found, nil
		}
	}
}

// markedCalls are clients that call, each call with a mark.
type markedCalls struct {
	address string
	name    string // that the marks begin with
	client  http.Client
	next    atomic.Int64
	mu      sync.Mutex // guards what follows
	done    []string
	lost    []error
	failed  []error
}

func newMarkedCalls(t *testing.T, address string) *markedCalls {
	return &markedCalls{address: address, name: strings.ReplaceAll(path.Base(t.Name()), "_", " "), client: http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// run makes calls until enough were answered, or stop is closed.
func (m *markedCalls) run(clients, enough int, stop <-chan struct{}) {
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for {
				m.mu.Lock()
				over := len(m.done) >= enough || len(m.failed) > 0
				m.mu.Unlock()
				select {
				case <-stop:
					over = true
				default:
				}
				if over {
					return
				}
				mark := fmt.Sprintf("%s, mark %d", m.name, m.next.Add(1))
				err := callModern(&m.client, m.address, mark)
				m.mu.Lock()
				switch {
				case err == nil:
					m.done = append(m.done, mark)
				case errors.Is(err, errLost):
					m.lost = append(m.lost, err)
				default:
					m.failed = append(m.failed, err)
				}
				m.mu.Unlock()
			}
		})
	}
	running.Wait()
}

// answered is how many calls were.
func (m *markedCalls) answered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.done)
}

// check wants each call that was answered once in the log.
func (m *markedCalls) check(d *daemon) {
	d.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range m.failed {
		d.t.Errorf("a call has failed: %v", err)
	}
	var missing, more int
	eventually(d.t, "the calls of all instances are in the log", func() error {
		found, err := marksOf(d)
		if err != nil {
			return err
		}
		missing, more = 0, 0
		for _, mark := range m.done {
			switch n := found[mark]; {
			case n == 0:
				missing++
			case n > 1:
				more++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d are missing", missing)
		}
		return nil
	})
	d.t.Logf("%d calls answered, %d lost with an instance; %d missing, %d more than once", len(m.done), len(m.lost), missing, more)
	if missing+more > 0 {
		d.t.Error("acknowledged calls are missing, or there twice")
	}
}

// relay is a way to a server that can be cut.
type relay struct {
	net.Listener
	to    string
	mu    sync.Mutex // guards what follows
	cut   bool       // bytes are dropped, and neither end is told
	conns []net.Conn
}

func startRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(in)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); r.restore() })
	return r
}

func (r *relay) carry(in net.Conn) {
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, in, out)
	r.mu.Unlock()
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				r.mu.Lock()
				cut := r.cut
				r.mu.Unlock()
				if err == nil && !cut {
					_, err = way[1].Write(buf[:n])
				}
				if err != nil {
					_, _ = way[0].Close(), way[1].Close()
					return
				}
			}
		}()
	}
}

// sever has all bytes lost from now on, as when a cable is pulled.
func (r *relay) sever() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
}

// restore lets new connections through; those from before are gone.
func (r *relay) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// startInstances starts daemons that share a database.
func startInstances(t *testing.T, n int, database, upstream string) (all []*daemon) {
	for range n {
		all = append(all, startDaemon(t, fmt.Sprintf(`{"database":%q,"mcpServers":{"m":{"url":%q}}}`, database, upstream)))
	}
	for _, d := range all {
		awaitCallable(d)
	}
	return all
}

// awaitCallable waits until a daemon is well, and its tool can be called.
func awaitCallable(d *daemon) {
	d.t.Helper()
	awaitReady(d)
	eventually(d.t, "the tool can be called", func() error { return callModern(http.DefaultClient, "http://"+d.address, "ready-"+d.address) })
}

// awaitReady waits until a daemon is well.
func awaitReady(d *daemon) {
	d.t.Helper()
	eventually(d.t, "the daemon is ready", func() error { return readiness(d) })
}

// readiness is what /readyz says.
func readiness(d *daemon) error {
	resp, err := http.Get("http://" + d.address + "/readyz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return errors.New(string(text))
	}
	return nil
}

const noteTool = `{"name":"note","description":"Notes a mark.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

// TestInstances: three instances share a PostgreSQL database, behind a load balancer.
func TestInstances(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	database := server.CreateDatabase(t)
	up := startUpstream(t, noteTool)
	all := startInstances(t, 3, database, up.URL)
	balanced := startBalancer(t, all)

	t.Run("decisions hold on all", func(t *testing.T) {
		callable := func(d *daemon, want bool) func() error {
			return func() error {
				if err := callModern(http.DefaultClient, "http://"+d.address, "tried"); (err == nil) != want {
					return fmt.Errorf("a call is answered with %v", err)
				}
				return nil
			}
		}
		for i, on := range []bool{false, true, false, true} {
			if status, body := all[i%3].rest(http.MethodPost, "/servers/m/tools/note/"+map[bool]string{true: "enable", false: "disable"}[on], ""); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			for _, d := range all {
				eventually(t, fmt.Sprintf("callable is %v on another", on), callable(d, on))
			}
		}
	})
	t.Run("tokens hold on all", func(t *testing.T) {
		status, body := all[0].rest(http.MethodPost, "/tokens", `{"name":"ci"}`)
		var made struct{ Token string }
		if err := json.Unmarshal(body, &made); err != nil || made.Token == "" {
			t.Fatalf("%d %s", status, body)
		}
		knows := func(d *daemon, want int) func() error {
			return func() error {
				req, _ := http.NewRequest(http.MethodPost, "http://"+d.address+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				req.Header.Set("Authorization", "Bearer "+made.Token)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				if _ = resp.Body.Close(); resp.StatusCode != want {
					return errors.New(resp.Status)
				}
				return nil
			}
		}
		for _, d := range all {
			eventually(t, "the token is good on another", knows(d, http.StatusOK))
		}
		if status, body := all[1].rest(http.MethodDelete, "/tokens/ci", ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		for _, d := range all {
			eventually(t, "the token is good for nothing on another", knows(d, http.StatusUnauthorized))
		}
	})
	t.Run("sessions name their instance", func(t *testing.T) {
		a := all[0].legacy()
		other := &agent{d: all[1], client: a.client, session: a.session}
		list := func(a *agent, want int) {
			t.Helper()
			if status, body, _ := a.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); status != want {
				t.Errorf("an instance answers with %d %s, not %d", status, body, want)
			}
		}
		list(other, http.StatusOK) // another instance continues it
		ended := all[0].legacy()
		req, _ := http.NewRequest(http.MethodDelete, "http://"+all[0].address+"/mcp", nil)
		req.Header.Set("Mcp-Session-Id", ended.session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%v %v", resp, err)
		}
		list(ended, http.StatusNotFound)
		list(&agent{d: all[2], client: a.client, session: ended.session}, http.StatusNotFound)
		if again := all[0].legacy(); again.session[:10] != a.session[:10] || all[1].legacy().session[:10] == a.session[:10] {
			t.Errorf("the ids of sessions do not tell the instances apart: %s, %s", a.session[:10], again.session[:10])
		}
	})
	t.Run("events come from all", func(t *testing.T) {
		l := &listener{d: all[0], key: all[0].key()}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { defer close(left); l.listen(ctx) }()
		look := func(is func() bool) func() error {
			return func() error {
				l.mu.Lock()
				defer l.mu.Unlock()
				if !is() {
					return errors.New("it is not told")
				}
				return nil
			}
		}
		eventually(t, "somebody listens", look(func() bool { return l.last != "" }))
		for i, d := range all {
			mark := fmt.Sprint("told of ", i)
			if err := callModern(http.DefaultClient, "http://"+d.address, mark); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a call of instance "+fmt.Sprint(i), look(func() bool {
				return slices.ContainsFunc(l.events, func(e event) bool {
					return e.kind == "activity.tool_call.completed" && bytes.Contains(e.data, []byte(mark))
				})
			}))
		}
		leave()
		<-left
	})
	t.Run("calls and an instance that is stopped", func(t *testing.T) {
		const clients = 24
		enough := volume.FullOrQuick(10_000, 2_000)
		calls := newMarkedCalls(t, balanced.URL)
		calls.run(clients, enough/2, nil)
		stopped := make(chan struct{})
		go func() { defer close(stopped); all[1].stop() }()
		calls.run(clients, enough, nil)
		<-stopped
		// The instance answers the calls that it has accepted, and the next instance answers the others. Only Linux prevents
		// new connections in the moment in which the instance stops listening.
		if n := len(calls.lost); n > clients || n > 0 && runtime.GOOS == "linux" {
			t.Errorf("%d calls were lost", n)
		}
		calls.check(all[0])
		all[1].start()
		awaitCallable(all[1])
	})
	t.Run("calls and an instance that is killed", func(t *testing.T) {
		const clients = 24
		enough := volume.FullOrQuick(10_000, 2_000)
		calls := newMarkedCalls(t, balanced.URL)
		calls.run(clients, enough/2, nil)
		killed := make(chan struct{})
		go func() { defer close(killed); all[2].kill() }()
		calls.run(clients, enough, nil)
		<-killed
		// The calls in flight are lost, and those that its kernel accepted while it died.
		if len(calls.lost) > 2*clients {
			t.Errorf("%d calls were lost", len(calls.lost))
		}
		all[2].start() // the records in its spool are merged
		awaitReady(all[2])
		calls.check(all[0])
	})
	for _, d := range all {
		for _, text := range []string{d.stderr.String(), string(bodyOf(d.rest(http.MethodGet, "/config", "")))} {
			if strings.Contains(text, pgtest.Password) {
				t.Errorf("the password of the database is shown:\n%.2000s", text)
			}
		}
	}
}

func bodyOf(_ int, body []byte) []byte { return body }

// fault is a way in which a database goes away, and comes back.
type fault struct {
	name     string
	do, undo func()
	noticed  bool // it lasts, so that it is said
}

// postgresFaults returns the ways in which a PostgreSQL server goes away from those who
// reach it, as the role d1, by a relay.
func postgresFaults(t *testing.T, server *pgtest.Server, way *relay) []fault {
	query := func(statements string) {
		t.Helper()
		if out, err := server.Query(statements); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run := func() {
		t.Helper()
		if err := server.StartProcess(); err != nil {
			t.Fatal(err)
		}
	}
	const terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'd1'"
	return []fault{
		{"killed", server.Kill, run, true},
		{"stopped", server.Stop, run, true},
		{"cut off", way.sever, way.restore, true},
		{"connections ended", func() { query(terminate) }, func() {}, false},
		{"out of connections", func() { query("ALTER ROLE d1 CONNECTION LIMIT 0"); query(terminate) }, func() { query("ALTER ROLE d1 CONNECTION LIMIT -1") }, true},
	}
}

// relayedDatabase starts a server, and returns a database of its that is reached by a relay.
func relayedDatabase(t *testing.T) (server *pgtest.Server, way *relay, database string) {
	server = pgtest.StartServer(t)
	way = startRelay(t, server.Address())
	return server, way, strings.Replace(server.CreateDatabase(t), server.Address(), way.Addr().String(), 1)
}

// TestPostgresFaults: the PostgreSQL server is killed, stopped, disconnected and out of connections during calls. Calls
// continue, and each is in the log once.
func TestPostgresFaults(t *testing.T) {
	t.Parallel()
	server, way, database := relayedDatabase(t)
	up := startUpstream(t, noteTool)
	all := startInstances(t, 2, database, up.URL)
	balanced := startBalancer(t, all)
	for _, fault := range postgresFaults(t, server, way) {
		t.Run(fault.name, func(t *testing.T) {
			calls := newMarkedCalls(t, balanced.URL)
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { defer close(done); calls.run(8, 1<<30, stop) }()
			enough := func(n int) {
				eventually(t, "calls are answered", func() error {
					if calls.answered() < n {
						return errors.New("they are not")
					}
					return nil
				})
			}
			enough(200)
			fault.do()
			if fault.noticed {
				eventually(t, "it is said that the database is unavailable", func() error {
					if readiness(all[0]) == nil || readiness(all[1]) == nil {
						return errors.New("nothing is said")
					}
					return nil
				})
			}
			enough(calls.answered() + 300)
			fault.undo()
			began := time.Now()
			for _, d := range all {
				awaitReady(d)
			}
			t.Logf("well again after %v", time.Since(began).Round(time.Millisecond))
			enough(calls.answered() + 200)
			close(stop)
			<-done
			calls.check(all[0])
			calls.check(all[1])
		})
	}
	status, body := all[0].rest(http.MethodGet, "/activity/verify", "")
	if !bytes.Contains(body, []byte(`"ok":true`)) {
		t.Errorf("%d %s", status, body)
	}
}

// TestPostgresFaultsUnderLoad is TestPostgresFaults while 10,000 calls come from 32 sessions,
// and 6,000 from 200 (fewer in a quick run): all are answered, and each is in the log once.
func TestPostgresFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, load := range []struct {
		sessions int
		calls    int64
	}{{32, int64(volume.FullOrQuick(10_000, 2_000))}, {200, int64(volume.FullOrQuick(6_000, 2_000))}} {
		t.Run(fmt.Sprint(load.sessions, " sessions"), func(t *testing.T) {
			t.Parallel()
			server, way, database := relayedDatabase(t)
			d := startDurable(t, database)
			faults := postgresFaults(t, server, way)
			part := load.calls / int64(len(faults))
			for i, fault := range faults { // each comes in the midst of its part, and lasts until its end
				end := int64(i+1) * part
				d.next.Store(end - part)
				d.call(load.sessions, end, end-part/2, fault.do)
				fault.undo()
				awaitReady(d.daemon)
			}
			if n := d.count.Load(); n != load.calls {
				t.Errorf("%d of %d calls were answered", n, load.calls)
			}
			if recorded := d.check(t); int64(recorded) != load.calls {
				t.Errorf("%d of %d calls are in the log", recorded, load.calls)
			}
		})
	}
}

// After kill -9 at random moments every call that was answered, or reached the upstream, is in
// PostgreSQL, once.
func TestNoAnsweredCallIsLostInPostgres(t *testing.T) {
	t.Parallel()
	loseNoAnsweredCall(t, pgtest.StartServer(t).CreateDatabase(t))
}

// TestPlantedSecretsInPostgres is TestPlantedSecrets with the log in PostgreSQL. It searches all files of PostgreSQL.
func TestPlantedSecretsInPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	plantedSecrets(t, server.CreateDatabase(t), server.Dir())
}
