package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// countingTransport counts the initialize requests of all clients. Each run of the daemon has new connections, because
// a request on an old connection could be in flight at the restart.
type countingTransport struct {
	introductions atomic.Int64
	now           atomic.Pointer[http.Transport]
}

// renew makes later requests use new connections.
func (c *countingTransport) renew() {
	if old := c.now.Swap(&http.Transport{MaxIdleConnsPerHost: 64}); old != nil {
		old.CloseIdleConnections()
	}
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			c.introductions.Add(1)
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.now.Load().RoundTrip(r)
}

// restarts tells clients when the daemon is up. A call that overlaps with a restart may fail, all others must not.
type restarts struct {
	mu     sync.RWMutex // held for writing while the daemon restarts
	phase  atomic.Int64 // changes when a restart begins; mu is held
	done   atomic.Int64 // calls that were answered
	lost   atomic.Int64 // calls that overlapped with a restart and failed
	enough atomic.Int64 // clients stop when so many calls were answered
}

// call makes calls until enough were answered.
func (r *restarts) call(t *testing.T, call func(mark int64) error) {
	for r.done.Load() < r.enough.Load() && !t.Failed() {
		r.mu.RLock() // the daemon is up
		before := r.phase.Load()
		r.mu.RUnlock()
		err := call(r.done.Load())
		switch {
		case err == nil:
			r.done.Add(1)
		case r.phase.Load() == before:
			t.Errorf("a call failed while the daemon ran: %v", err)
		default:
			r.lost.Add(1)
		}
	}
}

// restartPlaces are the addresses of the clients, each with a tool that notes a mark.
var restartPlaces = []struct{ Path, Tool, Arguments string }{
	{"/mcp", "call_tool_read", `{"name":"m:note","args":{"mark":%d}}`},
	{"/mcp/all", "m__note", `{"mark":%d}`},
	{"/mcp/all/read", "m__note", `{"mark":%d}`},
	{"/mcp/p/p/all", "m__note", `{"mark":%d}`},
	{"/mcp/servers/m", "note", `{"mark":%d}`},
}

// restartingDaemon starts a daemon with the server of restartPlaces.
func restartingDaemon(t *testing.T) *daemon {
	server := mcptest.New(mcptest.Options{}, mcptest.Tool{
		Definition: `{"name":"note","description":"Notes a mark.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":"noted %d"}]}`, c.IntArgument("mark", -1)), nil
		},
	})
	d := startDaemon(t, fmt.Sprintf(`{"profiles":{"p":{"servers":["m"]}},"mcpServers":{"m":{"url":%q,"trust":"auto"}}}`, mcptest.Serve(t, server).URL))
	d.awaitTools("m:note")
	return d
}

// restartInLife stops the daemon, or kills it in every other life, and starts it again.
func (d *daemon) restartInLife(life int64) {
	if life%2 == 0 {
		d.stop()
	} else {
		d.kill()
	}
	d.start()
}

// TestSessionsSurviveRestarts: twenty clients of the official Go SDK hold sessions on five addresses while the daemon is
// stopped or killed five times under load. No call fails but those in flight, and no client initializes again.
func TestSessionsSurviveRestarts(t *testing.T) {
	t.Parallel()
	const clients, lives = 20, 5
	perLife := int64(volume.FullOrQuick(4_000, 200)) // calls of all clients
	d := restartingDaemon(t)
	count := &countingTransport{}
	count.renew()
	t.Cleanup(count.renew)
	connect := func(path string) *mcp.ClientSession {
		client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		// A daemon that starts on a busy machine may take longer than the five attempts of the default.
		s, err := client.Connect(within(t), &mcp.StreamableClientTransport{Endpoint: "http://" + d.address + path, MaxRetries: 100,
			HTTPClient: &http.Client{Transport: count}}, &mcp.ClientSessionOptions{ProtocolVersion: legacyRevision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	var r restarts
	calls := make([]func(mark int64) error, clients)
	var sessions []*mcp.ClientSession
	var ids []string
	for i := range calls {
		at := restartPlaces[i%len(restartPlaces)]
		s := connect(at.Path)
		sessions, ids = append(sessions, s), append(ids, s.ID())
		calls[i] = func(mark int64) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: at.Tool, Arguments: json.RawMessage(fmt.Sprintf(at.Arguments, mark))})
			if err != nil {
				return fmt.Errorf("%s: %w", at.Path, err)
			}
			if text, _ := json.Marshal(got); got.IsError || !bytes.Contains(text, fmt.Appendf(nil, "noted %d", mark)) {
				return fmt.Errorf("%s: %s", at.Path, text)
			}
			return nil
		}
	}
	r.enough.Store((lives + 1) * perLife)
	var load sync.WaitGroup
	for _, call := range calls {
		load.Go(func() { r.call(t, call) })
	}
	for life := range int64(lives) {
		eventually(t, "the clients call", func() error {
			if done := r.done.Load(); done < (life+1)*perLife && !t.Failed() {
				return fmt.Errorf("%d calls", done)
			}
			return nil
		})
		r.mu.Lock()
		r.phase.Add(1)
		d.restartInLife(life)
		count.renew()
		r.mu.Unlock()
	}
	load.Wait()
	for i, s := range sessions {
		if s.ID() != ids[i] {
			t.Errorf("%s has another session", restartPlaces[i%len(restartPlaces)].Path)
		}
		if err := calls[i](int64(i)); err != nil {
			t.Error(err)
		}
	}
	if n := count.introductions.Load(); n != clients {
		t.Errorf("%d clients have sent initialize %d times", clients, n)
	}
	t.Logf("%d calls were answered; %d overlapped with a restart and failed", r.done.Load(), r.lost.Load())
}

// TestTypeScriptSessionsSurviveRestarts: as TestSessionsSurviveRestarts, with twenty clients of both major versions of the
// official TypeScript SDK.
func TestTypeScriptSessionsSurviveRestarts(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	modules, node := peers(t)
	installed(t, "@modelcontextprotocol", "client", "package.json")
	const clients, lives = 20, 5
	perLife := volume.FullOrQuick(2_000, 200) // calls of all clients
	d := restartingDaemon(t)
	places, err := json.Marshal(slices.Repeat(restartPlaces, clients/len(restartPlaces)))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join("testdata", "survive.mjs"), modules, "http://"+d.address, string(places))
	cmd.Stderr = os.Stderr
	commands, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	// until reads the lines up to one that is wanted, and returns it.
	until := func(what string, wanted func(line string) bool) string {
		t.Helper()
		stuck := time.AfterFunc(5*patience, func() { _ = cmd.Process.Kill() })
		defer stuck.Stop()
		for lines.Scan() {
			if wanted(lines.Text()) {
				return lines.Text()
			}
		}
		t.Fatalf("the clients ended, or did not get on: %s: %v", what, lines.Err())
		return ""
	}
	tell := func(command string) {
		t.Helper()
		if _, err := io.WriteString(commands, command+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) func(string) bool { return func(line string) bool { return line == want } }
	answered := func(n int) {
		t.Helper()
		until(fmt.Sprint(n, " calls"), func(line string) bool { now, err := strconv.Atoi(line); return err == nil && now >= n })
	}
	until("all are connected", is("connected"))
	for life := range lives {
		answered((life + 1) * perLife)
		tell("down")
		until("they know of the restart", is("down"))
		d.restartInLife(int64(life))
		tell("up")
	}
	answered((lives + 1) * perLife)
	tell("end")
	var got struct {
		Introductions, Done, Lost int
		Failures                  []string
	}
	if text := until("the end", func(line string) bool { return strings.HasPrefix(line, "{") }); json.Unmarshal([]byte(text), &got) != nil || len(got.Failures) > 0 || got.Introductions != clients {
		t.Errorf("%d clients have sent initialize %d times; failures: %q", clients, got.Introductions, got.Failures)
	}
	t.Logf("%d calls were answered; %d overlapped with a restart and failed", got.Done, got.Lost)
}
