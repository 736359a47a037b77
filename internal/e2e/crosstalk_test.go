package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// busyTool returns a tool whose messages all name the call that they belong to.
func busyTool() mcptest.Tool {
	return mcptest.Tool{
		Definition: mcptest.ToolDefinition("busy"),
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			n := c.IntArgument("n", -1)
			c.SendLogMessage(fmt.Sprint("call ", n))
			c.SendProgress(n)
			answer, err := c.SendRequest("elicitation/create", fmt.Appendf(nil, `{"message":"call %d","requestedSchema":{"type":"object","properties":{}}}`, n))
			if err != nil {
				return nil, err
			}
			c.SendLogMessage(fmt.Sprint("call ", n))
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":"call %d"}],"structuredContent":%s}`, n, answer.Result), nil
		},
	}
}

// relayClient is a client of the legacy protocol on /mcp/servers/NAME.
type relayClient struct {
	t       testing.TB
	url     string
	session string
	tool    string        // the tool that call uses
	thinks  time.Duration // delay before it answers a request of the server
}

func (d *daemon) relayClient(server string) *relayClient {
	d.t.Helper()
	return d.clientAt("/mcp/servers/" + server)
}

func (d *daemon) clientAt(path string) *relayClient {
	d.t.Helper()
	return d.openAt(path, `{"elicitation":{}}`)
}

// openAt opens a session of the legacy protocol with these capabilities.
func (d *daemon) openAt(path, capabilities string) *relayClient {
	d.t.Helper()
	c := &relayClient{t: d.t, url: "http://" + d.address + path}
	resp, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + legacyRevision +
		`","capabilities":` + capabilities + `,"clientInfo":{"name":"e2e","version":"1"}}}`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		d.t.Fatalf("initialize gave no session: %s", resp.Status)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *relayClient) post(body string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", legacyRevision)
	}
	return http.DefaultClient.Do(req)
}

// send posts a message that expects no response.
func (c *relayClient) send(body string) {
	resp, err := c.post(body)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		c.t.Errorf("%.80s: %s", body, resp.Status)
	}
}

// call makes one call, answers the server's requests, and returns all messages.
func (c *relayClient) call(id, n int) (messages []string) {
	resp, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d},"_meta":{"progressToken":%d}}}`, id, c.tool, n, id))
	if err != nil {
		c.t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	events := wirejson.NewSSEReader(resp.Body, 1<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return messages
		}
		messages = append(messages, string(e.Data))
		if string(wirejson.Find(e.Data, "method")) == `"elicitation/create"` {
			message := wirejson.Find(wirejson.Find(e.Data, "params"), "message")
			time.Sleep(c.thinks)
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"heard":%s}}}`, wirejson.Find(e.Data, "id"), message))
		}
	}
}

// TestNoCrossTalk: 16 sessions with 64 calls in flight use the same IDs and tokens. Every message reaches its own call.
func TestNoCrossTalk(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool()))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q}}}`, upstream.URL))
	d.awaitTools("s:busy")
	callAtOnce(t, func() *relayClient { return d.relayClient("s") }, "busy")
}

// TestNoCrossTalkOfAll: the same on /mcp/all, where each session calls tools of two servers that use the same IDs.
func TestNoCrossTalkOfAll(t *testing.T) {
	t.Parallel()
	one := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool()))
	two := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool()))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"one":{"url":%q},"two":{"url":%q}}}`, one.URL, two.URL))
	d.awaitTools("one:busy", "two:busy")
	callAtOnce(t, func() *relayClient { return d.clientAt("/mcp/all") }, "one__busy", "two__busy")
}

// TestUserTimeDoesNotCount: the time that a user takes to answer does not count towards the server's time limit. The
// time that the server takes afterwards does.
func TestUserTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	hangs := mcptest.Tool{Definition: mcptest.ToolDefinition("hangs"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		if _, err := c.SendRequest("elicitation/create", json.RawMessage(`{"message":"m"}`)); err != nil {
			return nil, err
		}
		<-t.Context().Done() // as a server that never answers
		return nil, mcptest.ErrNoAnswer
	}}
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool(), hangs))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"trust":"auto","call_timeout":"500ms"}}}`, upstream.URL))
	d.awaitTools("s:busy", "s:hangs")
	for prefix, c := range map[string]*relayClient{"": d.relayClient("s"), "s__": d.clientAt("/mcp/all")} {
		c.thinks = 1200 * time.Millisecond
		c.tool = prefix + "busy"
		if got := c.call(1, 5); len(got) != 5 || !strings.Contains(got[4], `"heard":"call 5"`) {
			t.Errorf("%s: %q", c.tool, got)
		}
		c.tool = prefix + "hangs"
		began := time.Now()
		got := c.call(2, 5)
		if last := got[len(got)-1]; !strings.Contains(last, `"TIMEOUT"`) || time.Since(began) < c.thinks {
			t.Errorf("%s, after %v: %q", c.tool, time.Since(began), got)
		}
	}
}

// callAtOnce lets clients call the tools, each with several concurrent calls.
func callAtOnce(t *testing.T, client func() *relayClient, tools ...string) {
	const sessions, atOnce, perCall = 16, 4, 5
	rounds := volume.FullOrQuick(50_000/(sessions*atOnce*perCall)+1, 10)
	var wg sync.WaitGroup
	var told atomic.Int64
	for s := range sessions {
		session := client()
		for lane := range atOnce {
			c := *session
			c.tool = tools[lane%len(tools)]
			wg.Go(func() {
				for round := range rounds {
					n := (s*atOnce+lane)*100_000 + round
					messages := c.call(lane, n)
					told.Add(int64(len(messages)))
					if len(messages) != perCall {
						t.Errorf("call %d got %d messages: %q", n, len(messages), messages)
						return
					}
					for i, m := range messages {
						if want := fmt.Sprintf(`call %d"`, n); i != 1 && !strings.Contains(m, want) || i == 1 && !strings.Contains(m, fmt.Sprintf(`"progressToken":%d,"progress":%d}`, lane, n)) {
							t.Errorf("call %d, message %d: %s", n, i, m)
						}
					}
					if last := messages[perCall-1]; !strings.Contains(last, fmt.Sprintf(`"heard":"call %d"`, n)) || !strings.Contains(last, fmt.Sprintf(`"id":%d,`, lane)) {
						t.Errorf("call %d: %s", n, last)
					}
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d messages", told.Load())
}
