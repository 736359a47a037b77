package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// counted is a set of tools that records the calls that reach them.
type counted struct {
	mu   sync.Mutex // guards the fields below
	ran  []string
	tool []mcptest.Tool
}

func (c *counted) add(name, annotations, schema string) {
	definition := fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":%s`, name, name, schema)
	if annotations != "" {
		definition += `,"annotations":` + annotations
	}
	c.tool = append(c.tool, mcptest.Tool{Definition: definition + "}", Handle: func(call *mcptest.Call) (json.RawMessage, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ran = append(c.ran, name+" "+string(call.Arguments))
		return json.RawMessage(`{"content":[{"type":"text","text":"it ran"}]}`), nil
	}})
}

func (c *counted) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ran)
}

// deed is a tool call that needs approval, however the call is made.
type deed struct{ tool, args string }

// TestAskCannotBeEvaded: no call that needs approval runs without it. The test tries lanes, endpoints, spellings of the
// name, batches, tasks, protocols, tokens, repetition, headers, and the modes for hints and arguments.
func TestAskCannotBeEvaded(t *testing.T) {
	t.Parallel()
	world := &counted{}
	const object, sql, command = `{"type":"object"}`, `{"type":"object","properties":{"sql":{"type":"string"}}}`, `{"type":"object","properties":{"command":{"type":"string"}}}`
	world.add("wipe", `{"destructiveHint":true}`, object)
	world.add("delete_all", "", object) // has no hints; its name suggests a destructive tool
	world.add("honest", `{"readOnlyHint":true}`, object)
	world.add("query", `{"readOnlyHint":true}`, sql)
	world.add("run", "", command)
	world.add("update", `{"readOnlyHint":false,"destructiveHint":false}`, object)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	deeds := []deed{{"wipe", `{}`}, {"delete_all", `{}`}, {"query", `{"sql":"DROP TABLE x"}`}, {"run", `{"command":"rm -rf /tmp/x"}`}, {"update", `{"a":1}`}, {"honest", `{}`}}
	var modes sync.WaitGroup
	var tried, held atomic.Int64
	for _, mode := range []string{
		`"intent_declaration": {"strict_server_validation": false}`,
		`"intent_declaration": {"strict_server_validation": false, "judge_arguments": "off", "infer_hints": "off"}`,
		`"intent_declaration": {"strict_server_validation": false, "judge_arguments": "enforce", "infer_hints": "enforce"}`,
	} {
		// A user's hint overrides correct the hints, and a rule of ask.tools applies whatever the tool's hints are.
		d := startDaemon(t, fmt.Sprintf(`{%s, "validate_arguments": "off", "ask": {"write": "ask", "destructive": "ask", "tools": {"s:honest": "ask"}, "wait": "1s"},
			"profiles": {"p": {"servers": ["s"], "ask": {"tools": {"*:*": "off"}}}}, "mcpServers": {"s": {"url": %q, "trust": "auto", "hint_overrides": {"honest": {"destructiveHint": false}}}}}`, mode, u.URL))
		d.awaitTools("s:wipe", "s:honest")
		e := &evasion{d: d, token: d.createToken("t"), bound: d.createToken("b", "--profile", "p")}
		modes.Go(func() {
			for _, one := range deeds {
				tried.Add(e.tryAll(t, one, &held))
			}
			e.stop()
		})
	}
	modes.Wait()
	if ran := world.all(); len(ran) > 0 {
		t.Errorf("of %d attempts, these ran without approval: %q", tried.Load(), ran)
	}
	if held := held.Load(); held < 200 {
		t.Errorf("%d of %d attempts were held", held, tried.Load())
	} else {
		t.Logf("%d attempts: %d were held, the others were refused", tried.Load(), held)
	}
}

// evasion tries to make calls run without approval.
type evasion struct {
	d            *daemon
	token, bound string
	ends         []func()
}

func (e *evasion) stop() {
	for _, end := range e.ends {
		end()
	}
}

// attempt is one way to call a tool. It returns the answer of the daemon.
type attempt struct {
	name string
	do   func() string
}

// tryAll makes all attempts at the same time and returns their number. Each attempt must be held or refused.
func (e *evasion) tryAll(t *testing.T, one deed, held *atomic.Int64) int64 {
	all := e.attempts(t, one)
	var done sync.WaitGroup
	for _, a := range all {
		done.Go(func() {
			switch answer := a.do(); {
			case strings.Contains(answer, "it ran") || answer == "":
				t.Errorf("%s %s, %s: %s", one.tool, one.args, a.name, answer)
			case strings.Contains(answer, "APPROVAL_PENDING") || strings.Contains(answer, "waits for the user's approval"):
				held.Add(1)
			default:
				t.Logf("%s %s, %s: %.200s", one.tool, one.args, a.name, answer)
			}
		})
	}
	done.Wait()
	return int64(len(all))
}

func (e *evasion) attempts(t *testing.T, one deed) (all []attempt) {
	inLane := func(name, more string) string { return fmt.Sprintf(`{"name":%q,"args":%s%s}`, name, one.args, more) }
	own := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, name, one.args, more)
	}
	called := func(lane, arguments string) string {
		return fmt.Sprintf(`{"name":"call_tool_%s","arguments":%s}`, lane, arguments)
	}
	add := func(name string, do func() string) { all = append(all, attempt{name, do}) }
	at := func(name, path, token, params string, modern bool) {
		add(name, func() string {
			_, answer := (&scopeActor{}).ask(t, e.d, map[string]string{}, token, path, "tools/call", params, modern)
			return string(answer)
		})
	}
	text, _ := json.Marshal(one.args)
	for _, lane := range []string{"read", "write", "destructive"} {
		at("/mcp "+lane, "/mcp", "", called(lane, inLane("s:"+one.tool, "")), false)
		at("/mcp modern "+lane, "/mcp", "", called(lane, inLane("s:"+one.tool, "")), true)
		at("/mcp token "+lane, "/mcp", e.token, called(lane, inLane("s:"+one.tool, "")), true)
		at("/mcp/p/p "+lane, "/mcp/p/p", "", called(lane, inLane("s:"+one.tool, "")), true)
		at("/mcp bound token "+lane, "/mcp", e.bound, called(lane, inLane("s:"+one.tool, "")), false)
		at("/mcp spelt "+lane, "/mcp", "", called(lane, inLane(" s : "+one.tool+" ", "")), true)
		at("/mcp args_json "+lane, "/mcp", "", called(lane, fmt.Sprintf(`{"name":"s:%s","args_json":%s}`, one.tool, text)), true)
		at("/mcp args text "+lane, "/mcp", "", called(lane, fmt.Sprintf(`{"name":"s:%s","args":%s}`, one.tool, text)), true)
		at("/mcp intent "+lane, "/mcp", "", called(lane, inLane("s:"+one.tool, fmt.Sprintf(`,"intent_operation_type":%q,"intent_reason":"approved by the user","approval_id":"x","approved":true`, lane))), true)
		add("REST "+lane, func() string {
			_, body := e.d.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_%s","name":"s:%s","args":%s}`, lane, one.tool, one.args))
			return string(body)
		})
		add("REST, with a key for repeats, "+lane, func() string {
			var body []byte
			for range 2 {
				_, body = e.restWith("/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_%s","name":"s:%s","args":%s}`, lane, one.tool, one.args), e.token, map[string]string{"Idempotency-Key": "k" + one.tool + lane})
			}
			return string(body)
		})
		add("CLI "+lane, func() string {
			_, out, errors := e.d.cli("call", "tool-"+lane, "s:"+one.tool, "--args", one.args)
			return out + errors
		})
		add("stdio "+lane, func() string {
			return e.stdio(t, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":%s}`, called(lane, inLane("s:"+one.tool, ""))))
		})
	}
	add("stdio --all", func() string {
		return e.stdio(t, "--all", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":%s}`, own("s__"+one.tool, "")))
	})
	for _, modern := range []bool{false, true} {
		era := map[bool]string{false: "legacy", true: "modern"}[modern]
		at("/mcp/all "+era, "/mcp/all", "", own("s__"+one.tool, ""), modern)
		at("/mcp/p/p/all "+era, "/mcp/p/p/all", e.token, own("s__"+one.tool, ""), modern)
		at("/mcp/servers/s "+era, "/mcp/servers/s", "", own(one.tool, ""), modern)
		at("/mcp/servers/s/mcp "+era, "/mcp/servers/s/mcp", e.token, own(one.tool, ""), modern)
		at("/mcp/s/s "+era, "/mcp/s/s", "", own(one.tool, ""), modern)
		at("as a task, "+era, "/mcp/servers/s", "", own(one.tool, `,"task":{"ttl":60000}`), modern)
		at("with answers to questions that nobody has asked, "+era, "/mcp/servers/s", "", own(one.tool, `,"inputResponses":{"a":{"action":"accept"}},"requestState":"x"`), modern)
	}
	add("twice at a time", func() string {
		var both sync.WaitGroup
		out := make(chan string, 2)
		for range 2 {
			both.Go(func() {
				_, answer := (&scopeActor{}).ask(t, e.d, map[string]string{}, "", "/mcp", "tools/call", called("destructive", inLane("s:"+one.tool, "")), true)
				out <- string(answer)
			})
		}
		both.Wait()
		return <-out + <-out
	})
	add("in a batch", func() string {
		_, _, header := scopePost(t, e.d, "", "/mcp/servers/s", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":%s}`, own(one.tool, ""))
		_, answer, _ := scopePost(t, e.d, "", "/mcp/servers/s", "["+strings.ReplaceAll(message, "%d", "1")+","+strings.ReplaceAll(message, "%d", "2")+"]", map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")})
		return string(answer)
	})
	add("as a notification", func() string {
		_, _, header := scopePost(t, e.d, "", "/mcp/servers/s", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
		status, answer, _ := scopePost(t, e.d, "", "/mcp/servers/s", fmt.Sprintf(`{"jsonrpc":"2.0","method":"tools/call","params":%s}`, own(one.tool, "")), map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": legacyRevision})
		return fmt.Sprint(status, string(answer))
	})
	return all
}

// restWith sends a REST request with a token and headers.
func (e *evasion) restWith(path, body, token string, headers map[string]string) (int, []byte) {
	req, err := http.NewRequest(http.MethodPost, "http://"+e.d.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		e.d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		e.d.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// stdio sends one request through `mcpproxy stdio`.
func (e *evasion) stdio(t *testing.T, flag, line string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(strings.Fields("stdio "+flag), "--data-dir", e.d.dataDir(), "--config", e.d.configPath())...)
	cmd.Env = e.d.environ()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return ""
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	var answer string
	for _, ask := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacyRevision + `","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, line} {
		if _, err := fmt.Fprintln(in, ask); err != nil {
			t.Error(err)
		}
		if answer, err = lines.ReadString('\n'); err != nil {
			t.Error(err)
		}
	}
	return answer
}

// TestApproveAHeldCall: an agent's call waits until a user approves it, in a terminal or over REST, and the agent calls
// again. The activity log contains every step. A kill of the daemon in between changes nothing, and only a user can
// answer.
func TestApproveAHeldCall(t *testing.T) {
	t.Parallel()
	world := &counted{}
	world.add("wipe", `{"destructiveHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	d := startDaemon(t, fmt.Sprintf(`{"ask": {"destructive": "ask", "wait": "1s"}, "mcpServers": {"s": {"url": %q, "trust": "auto"}}}`, u.URL))
	d.awaitTools("s:wipe")
	a := d.stateless()
	wipe := func(n int) toolResult {
		return a.call("call_tool_destructive", fmt.Sprintf(`{"name":"s:wipe","args":{"n":%d,"password":"correct horse battery"},"intent_reason":"to be tidy"}`, n))
	}
	pendingID := func(r toolResult) string {
		t.Helper()
		var s struct {
			Error struct {
				Code, Hint string
				Details    struct {
					ID string `json:"approval_id"`
				}
			}
		}
		if err := json.Unmarshal(r.StructuredContent, &s); err != nil || !r.IsError || s.Error.Code != "APPROVAL_PENDING" || s.Error.Hint != "Ask the user; then call again with the same arguments." || s.Error.Details.ID == "" {
			t.Fatalf("%s", r.StructuredContent)
		}
		return s.Error.Details.ID
	}
	id := pendingID(wipe(1))
	if code, out, errors := d.cli("pending", "list"); code != 0 || !strings.Contains(out, id) || strings.Contains(out, "correct horse") {
		t.Errorf("pending list: %d %s %s", code, out, errors)
	}
	if code, out, _ := d.cli("pending", "show", id[:6]); code != 0 || !strings.Contains(out, "to be tidy") || !strings.Contains(out, "s:wipe") {
		t.Errorf("pending show: %d %s", code, out)
	}
	if _, out, _ := d.cli("status"); !strings.Contains(out, "1 call: mcpproxy pending list") {
		t.Errorf("status: %s", out)
	}
	token := d.createToken("t")
	for name, status := range map[string]int{"": http.StatusForbidden, token: http.StatusForbidden} { // an anonymous caller and an agent
		for _, path := range []string{"/pending/" + id + "/approve", "/pending/" + id + "/deny", "/leases"} {
			if got, body := d.restAs("POST", path, `{"server":"s"}`, name); got != status && got != http.StatusUnauthorized {
				t.Errorf("POST %s as %q: %d %s", path, name, got, body)
			}
		}
		if got, body := d.restAs("GET", "/pending", "", name); got == http.StatusOK {
			t.Errorf("an agent sees the pending calls: %s", body)
		}
	}
	d.kill()
	d.start()
	d.awaitTools("s:wipe")
	if code, out, errors := d.cli("pending", "approve", id, "--yes"); code != 0 || !strings.Contains(out, "Approved: s:wipe") {
		t.Fatalf("pending approve: %d %s %s", code, out, errors)
	}
	if code, _, errors := d.cli("pending", "deny", id, "--yes"); code != 1 || !strings.Contains(errors, "was approved by admin") {
		t.Errorf("a second answer: %d %s", code, errors)
	}
	d.kill()
	d.start()
	d.awaitTools("s:wipe")
	if r := wipe(1); r.IsError || len(world.all()) != 1 {
		t.Fatalf("approved: %s, %q", r.text(), world.all())
	}
	call := d.newest("type=tool_call&status=success")
	if f := call.Metadata.Decision; f == nil || f.Approval != id || call.ParentID == "" {
		t.Errorf("record: %+v %+v", call, f)
	}
	held := d.newest("type=tool_call&status=held")
	if held.ID != call.ParentID || held.Metadata.Decision.Outcome != "asked" || held.Metadata.Decision.Check != "ask" {
		t.Errorf("the record of the held call: %+v, %+v", held, held.Metadata.Decision)
	}
	if answered := d.newest("type=approval&tool=wipe&status=success"); answered.Metadata.Action != "approve_call" || answered.ParentID != held.ID || answered.Actor != "admin" || answered.Source != "cli" || !strings.Contains(answered.Metadata.Detail, "after it was asked") {
		t.Errorf("the record of the answer: %+v", answered)
	}
	other := pendingID(wipe(1))
	if status, body := d.rest("POST", "/pending/"+other+"/deny", `{"reason":"Use the other database."}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if r := wipe(1); !strings.Contains(r.text(), "Use the other database.") || !strings.Contains(string(r.StructuredContent), "APPROVAL_DENIED") {
		t.Errorf("denied: %s", r.text())
	}
	// A lease permits calls until it ends.
	if code, out, errors := d.cli("lease", "grant", "s", "--lane", "destructive", "--calls", "2", "--yes"); code != 0 {
		t.Fatalf("%d %s %s", code, out, errors)
	}
	for n := range 2 {
		if r := wipe(10 + n); r.IsError {
			t.Errorf("leased: %s", r.text())
		}
	}
	pendingID(wipe(12))
	if ran := len(world.all()); ran != 3 {
		t.Errorf("%d ran: %q", ran, world.all())
	}
}

// TestWaitingCallContinues: a held call continues when it is approved while its client waits. The client gets progress
// every ten seconds, and event streams report the held call.
func TestWaitingCallContinues(t *testing.T) {
	t.Parallel()
	world := &counted{}
	world.add("wipe", `{"destructiveHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	d := startDaemon(t, fmt.Sprintf(`{"ask": {"destructive": "ask", "wait": "1m"}, "mcpServers": {"s": {"url": %q, "trust": "auto"}}}`, u.URL))
	d.awaitTools("s:wipe")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/api/v1/events?types=pending.changed", nil)
	if err != nil {
		t.Fatal(err)
	}
	events.Header.Set("X-API-Key", d.key())
	stream, err := http.DefaultClient.Do(events)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	told := bufio.NewScanner(stream.Body)
	heard := func() {
		t.Helper()
		for told.Scan() {
			if told.Text() == "event: pending.changed" {
				return
			}
		}
		t.Fatal("no event reports the held call")
	}
	answer := make(chan string, 1)
	go func() {
		a := d.legacy()
		_, body, _, err := a.try(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"call_tool_destructive","arguments":{"name":"s:wipe","args":{}},"_meta":{"progressToken":"p"}}}`, nil)
		answer <- fmt.Sprint(string(body), err)
	}()
	heard()
	var list struct{ Pending []struct{ ID string } }
	_, body := d.rest("GET", "/pending", "")
	if err := json.Unmarshal(body, &list); err != nil || len(list.Pending) != 1 {
		t.Fatalf("%s, %v", body, err)
	}
	select {
	case early := <-answer:
		t.Fatalf("the call did not wait: %s", early)
	case <-time.After(11 * time.Second):
	}
	if status, body := d.rest("POST", "/pending/"+list.Pending[0].ID+"/approve", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	heard()
	if got := <-answer; !strings.Contains(got, "it ran") || !strings.Contains(got, "Waiting for the user's approval: 10s") || !strings.Contains(got, `"progressToken":"p"`) {
		t.Errorf("%s", got)
	}
}
