package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// forms is a daemon whose servers s and q have one destructive tool that needs approval. A call waits for long at s,
// and for ten seconds at q. A form that the token "trusted" answers can approve.
type forms struct {
	*daemon
	world            *counted
	trusted, another string
	n                atomic.Int64 // no two calls have the same arguments
}

func newForms(t *testing.T) *forms {
	f := &forms{world: &counted{}}
	f.world.add("wipe", `{"destructiveHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, f.world.tool...))
	f.daemon = startDaemon(t, fmt.Sprintf(`{"ask": {"destructive": "ask", "wait": "1m", "answer_by_client": ["trusted"]}, "profiles": {"p": {"servers": ["*"]}},
		"mcpServers": {"s": {"url": %q, "trust": "auto"}, "q": {"url": %[1]q, "trust": "auto", "ask": {"wait": "10s"}}}}`, u.URL))
	f.awaitTools("s:wipe", "q:wipe")
	f.trusted, f.another = f.createToken("trusted"), f.createToken("another")
	return f
}

// ranWith returns how often a call with a number has reached a server.
func (f *forms) ranWith(n int64) (times int) {
	for _, one := range f.world.all() {
		if one == fmt.Sprintf(`wipe {"n":%d}`, n) {
			times++
		}
	}
	return times
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// formDoor is an endpoint and the way to call wipe on it.
type formDoor struct {
	path  string // or the arguments after `mcpproxy stdio`
	stdio bool
	call  func(server string, n int64) *mcp.CallToolParams
}

func formDoors() []formDoor {
	inLane := func(server string, n int64) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "call_tool_destructive", Arguments: map[string]any{"name": server + ":wipe", "args": map[string]any{"n": n}}}
	}
	among := func(server string, n int64) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: server + "__wipe", Arguments: map[string]any{"n": n}}
	}
	own := func(_ string, n int64) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "wipe", Arguments: map[string]any{"n": n}}
	}
	return []formDoor{{"/mcp", false, inLane}, {"/mcp/p/p", false, inLane}, {"/mcp/all", false, among}, {"/mcp/p/p/all", false, among},
		{"/mcp/servers/", false, own}, {"/mcp/s/", false, own}, {"", true, inLane}, {"--all", true, among}}
}

// connectAt connects the official client to an endpoint. server selects the server of an endpoint for one server.
func (f *forms) connectAt(door formDoor, server, era, token string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	var transport mcp.Transport
	if door.stdio {
		cmd := stdioCommand(f.dir, strings.Fields(door.path)...)
		cmd.Env = append(cmd.Env, "MCPPROXY_TOKEN="+token)
		transport = &mcp.CommandTransport{Command: cmd}
	} else {
		path := door.path
		if strings.HasSuffix(path, "/") {
			path += server
		}
		transport = &mcp.StreamableClientTransport{Endpoint: "http://" + f.address + path, HTTPClient: &http.Client{Transport: bearer(token)}}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, o).Connect(within(f.t), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
}

// TestClientForm: at every endpoint, in both protocols, with the official client. The form approves only for a token
// that may approve, and denies for every token. If there is no answer, or the token may not approve, the call waits for
// a user. The record names the client, the method and the answer with its author.
func TestClientForm(t *testing.T) {
	t.Parallel()
	f := newForms(t)
	approve := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve once"}}
	cases := []struct {
		name, server, token string
		says                *mcp.ElicitResult
		want                string
	}{
		{"approves", "s", f.trusted, approve, "it ran"},
		{"declines", "s", f.trusted, &mcp.ElicitResult{Action: "decline"}, "The user has denied the call"},
		{"denies, without a token", "s", "", &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "deny", "reason": "Use the copy."}}, "The reason: Use the copy."},
		{"cancels", "q", f.trusted, &mcp.ElicitResult{Action: "cancel"}, "waits for the user's approval"},
		{"may not approve", "q", f.another, approve, "waits for the user's approval"},
		{"may not approve, without a token", "q", "", approve, "waits for the user's approval"},
	}
	var all sync.WaitGroup
	for _, door := range formDoors() {
		for _, era := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
			all.Go(func() {
				for _, c := range cases {
					name, n, shown := fmt.Sprint(door.path, door.stdio, " ", era, " ", c.name), f.n.Add(1), 0
					s, err := f.connectAt(door, c.server, era, c.token, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						shown++
						if may := strings.HasPrefix(r.Params.Message, "Approve this call once?"); may != (c.token == f.trusted) || !strings.Contains(r.Params.Message, fmt.Sprintf(`{"n":%d}`, n)) {
							t.Errorf("%s: the form shows %s", name, r.Params.Message)
						}
						return c.says, nil
					}})
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					result, err := s.CallTool(within(t), door.call(c.server, n))
					ran := f.ranWith(n)
					if text, _ := json.Marshal(result); err != nil && !strings.Contains(err.Error(), "decision") || err == nil && !strings.Contains(string(text), c.want) || shown == 0 || ran != strings.Count(c.want, "it ran") {
						t.Errorf("%s: shown %d times, %d ran: %v %s", name, shown, ran, err, text)
					}
					_ = s.Close()
				}
			})
		}
	}
	all.Wait()
	held := f.newest("type=tool_call&status=held&tool=wipe")
	if !strings.HasPrefix(held.Metadata.Detail, "also asked in a form of the client, which can deny") {
		t.Errorf("the record of the held call: %+v", held)
	}
	answered := f.newest("type=approval&tool=wipe&status=success&actor=agent:trusted")
	if a := answered.Metadata; a.Action != "approve_call" && a.Action != "deny_call" || !strings.Contains(a.Detail, "after it was asked, by the client's form") || answered.ParentID == "" {
		t.Errorf("the record of the answer: %+v", answered)
	}
}

// TestFormOrUser: when a client's form and a user answer at the same time, the first answer counts.
func TestFormOrUser(t *testing.T) {
	t.Parallel()
	f := newForms(t)
	for round := range 12 {
		era := []string{"2025-11-25", "2026-07-28"}[round%2]
		n, denied := f.n.Add(1), make(chan int, 1)
		s, err := f.connectAt(formDoors()[0], "s", era, f.trusted, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			_, id, _ := strings.Cut(r.Params.Message, "mcpproxy pending approve ")
			id, _, _ = strings.Cut(id, ".")
			go func() {
				status, _ := f.rest("POST", "/pending/"+id+"/deny", `{"reason":"no"}`)
				denied <- status
			}()
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve once"}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.CallTool(within(t), formDoors()[0].call("s", n))
		text, _ := json.Marshal(result)
		status, ran := <-denied, f.ranWith(n)
		switch {
		case status == http.StatusOK && ran == 0 && strings.Contains(string(text), "has denied"):
		case status == http.StatusConflict && ran == 1 && strings.Contains(string(text), "it ran"):
		default:
			t.Errorf("%s: the user gets %d, %d ran, the client gets %v %s", era, status, ran, err, text)
		}
		_ = s.Close()
	}
}

// once makes one call with the modern protocol as a client that supports forms, with additional params. It returns the
// requestState and the answer.
func (f *forms) once(path, token, params string) (state, answer string) {
	name, _ := wirejson.String(wirejson.Find([]byte(params), "name"))
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + strings.TrimSuffix(params, "}") + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision +
		`","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"}}}}`
	_, text, _ := scopePost(f.t, f.daemon, token, path, body, map[string]string{"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": name})
	text = lastEvent(text)
	state, _ = wirejson.String(wirejson.Find(wirejson.Find(text, "result"), "requestState"))
	return state, string(text)
}

// TestFormsCannotBeEvaded: a call does not run with a forged state, a state of another call or client, a used state, or
// an answer in another format.
func TestFormsCannotBeEvaded(t *testing.T) {
	t.Parallel()
	f := newForms(t)
	const yes = `{"approval":{"action":"accept","content":{"decision":"approve once"}}}`
	quoted := func(s string) string { return string(wirejson.AppendString(nil, s)) }
	var tried, pending atomic.Int64
	room := make(chan struct{}, 80) // at most 100 calls of one client may wait
	var all sync.WaitGroup
	for path, call := range map[string]string{
		"/mcp": `{"name":"call_tool_destructive","arguments":{"name":"q:wipe","args":{"n":%d}}%s}`, "/mcp/p/p": `{"name":"call_tool_destructive","arguments":{"name":"q:wipe","args":{"n":%d}}%s}`,
		"/mcp/all": `{"name":"q__wipe","arguments":{"n":%d}%s}`, "/mcp/p/p/all": `{"name":"q__wipe","arguments":{"n":%d}%s}`, "/mcp/servers/q": `{"name":"wipe","arguments":{"n":%d}%s}`,
	} {
		all.Go(func() {
			n, other := f.n.Add(1), f.n.Add(1)
			state, answer := f.once(path, f.trusted, fmt.Sprintf(call, n, ""))
			ofOther, _ := f.once(path, f.trusted, fmt.Sprintf(call, other, ""))
			ofAnother, _ := f.once(path, f.another, fmt.Sprintf(call, n, ""))
			ofNobody, _ := f.once(path, "", fmt.Sprintf(call, n, ""))
			if state == "" || ofOther == "" || ofAnother == "" || ofNobody == "" {
				t.Errorf("%s: no form is shown: %s", path, answer)
				return
			}
			id, _ := wirejson.String(wirejson.Find([]byte(state), "mcpproxy/approval"))
			returns := func(state, responses string) string {
				return `,"requestState":` + quoted(state) + `,"inputResponses":` + responses
			}
			says := func(result string) string { return returns(state, `{"approval":`+result+`}`) }
			type try struct {
				who  string
				n    int64
				more string
			}
			tries := map[string]try{
				"by another token": {f.another, n, returns(state, yes)}, "by nobody": {"", n, returns(state, yes)}, "by another token, its own": {f.another, n, returns(ofAnother, yes)},
				"by nobody, its own": {"", n, returns(ofNobody, yes)}, "of another call": {f.trusted, n, returns(ofOther, yes)}, "for another call": {f.trusted, other, returns(state, yes)},
				"of another client": {f.trusted, n, returns(ofAnother, yes)}, "without a state": {f.trusted, n, `,"inputResponses":` + yes}, "the id alone": {f.trusted, n, returns(id, yes)},
				"the approval's id": {f.trusted, n, `,"approval_id":` + quoted(id) + `,"inputResponses":` + yes}, "an object": {f.trusted, n, `,"requestState":` + state + `,"inputResponses":` + yes},
				"in a list": {f.trusted, n, returns("["+state+"]", yes)}, "cut": {f.trusted, n, returns(state[:len(state)-2], yes)}, "twice": {f.trusted, n, returns(`{"mcpproxy/approval":"a",`+state[1:], yes)},
				"another case": {f.trusted, n, returns(strings.ToUpper(state), yes)}, "another id": {f.trusted, n, returns(strings.Replace(state, id[:3], "aaa", 1), yes)},
				"another key": {f.trusted, n, returns(state, strings.Replace(yes, "approval", "Approval", 1))}, "a list of answers": {f.trusted, n, returns(state, "["+yes+"]")},
				"all at the top": {f.trusted, n, returns(state, `{"action":"accept","content":{"decision":"approve once"}}`)}, "an answer in an answer": {f.trusted, n, says(yes)},
				"cancelled": {f.trusted, n, says(`{"action":"cancel","content":{"decision":"approve once"}}`)}, "no action": {f.trusted, n, says(`{"content":{"decision":"approve once"}}`)},
				"no content": {f.trusted, n, says(`{"action":"accept"}`)}, "approve": {f.trusted, n, says(`{"action":"accept","content":{"decision":"approve"}}`)},
				"blanks": {f.trusted, n, says(`{"action":"accept","content":{"decision":" approve once"}}`)}, "true": {f.trusted, n, says(`{"action":"accept","content":{"decision":true}}`)},
				"decisions": {f.trusted, n, says(`{"action":"accept","content":{"decision":["approve once"]}}`)}, "both": {f.trusted, n, says(`{"action":"accept","content":[{"decision":"approve once"}]}`)},
				"in arguments": {f.trusted, n, `,"_x":{"requestState":` + quoted(state) + `,"inputResponses":` + yes + `}`}, "as a task": {f.trusted, other, `,"task":{"ttl":60000}` + returns(state, yes)},
			}
			var trying sync.WaitGroup
			for name, one := range tries {
				trying.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					_, answer := f.once(path, one.who, fmt.Sprintf(call, one.n, one.more))
					if tried.Add(1); !strings.Contains(answer, "input_required") && !strings.Contains(answer, "waits for the user's approval") && !strings.Contains(answer, "error") {
						t.Errorf("%s, %s: %s", path, name, answer)
					}
					if strings.Contains(answer, "waits for the user's approval") {
						pending.Add(1)
					}
				})
			}
			trying.Go(func() { // the legacy protocol does not return a state
				if _, answer := (&scopeActor{}).ask(t, f.daemon, map[string]string{}, f.trusted, path, "tools/call", fmt.Sprintf(call, n, returns(state, yes)), false); !strings.Contains(string(answer), "waits for the user's approval") {
					t.Errorf("%s, in a session: %s", path, answer)
				}
			})
			trying.Wait()
			if f.ranWith(n)+f.ranWith(other) > 0 {
				t.Errorf("%s: the call ran: %q", path, f.world.all())
			}
			if _, answer := f.once(path, f.trusted, fmt.Sprintf(call, n, returns(state, yes))); !strings.Contains(answer, "it ran") {
				t.Errorf("%s: approved, but the answer is %s", path, answer)
			}
			for range 3 {
				if again, answer := f.once(path, f.trusted, fmt.Sprintf(call, n, returns(state, yes))); again == "" || again == state {
					t.Errorf("%s: the same state is accepted again: %s", path, answer)
				}
			}
			if f.ranWith(n) != 1 || f.ranWith(other) != 0 {
				t.Errorf("%s: %q", path, f.world.all())
			}
		})
	}
	all.Wait()
	t.Logf("%d attempts, no call ran; the answer to %d is that the call waits", tried.Load(), pending.Load())
}

// TestTypeScriptClientForms: the official clients in TypeScript, in both major versions and both protocols, show the
// form, and their answer takes effect. A form without an answer is cancelled when a user approves elsewhere.
func TestTypeScriptClientForms(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	modules, node := peers(t)
	installed(t, "@modelcontextprotocol", "client", "package.json")
	f := newForms(t)
	const yes, no = `{"action":"accept","content":{"decision":"approve once"}}`, `{"action":"accept","content":{"decision":"deny","reason":"Use the copy."}}`
	var all sync.WaitGroup
	for _, c := range []struct{ sdk, mode, token, says, want string }{
		{"client", modernRevision, f.trusted, yes, "it ran"},
		{"client", modernRevision, "", no, "The reason: Use the copy."},
		{"client", "legacy", f.trusted, yes, "it ran"},
		{"client", "legacy", f.another, `{"action":"decline"}`, "The user has denied the call"},
		{"client", "legacy", "", "nothing", "it ran"},
		{"sdk", "legacy", f.trusted, yes, "it ran"},
		{"sdk", "legacy", f.trusted, "nothing", "it ran"},
	} {
		all.Go(func() {
			n := f.n.Add(1)
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, filepath.Join("testdata", "forms.mjs"), modules, c.sdk, c.mode, "http://"+f.address+"/mcp", c.token, c.says, "s", fmt.Sprint(n))
			var stderr strings.Builder
			cmd.Stderr = writerFunc(func(p []byte) (int, error) { // the form is shown: a user approves elsewhere
				if _, rest, ok := strings.Cut(string(p), "mcpproxy pending approve "); ok && c.says == "nothing" {
					id, _, _ := strings.Cut(rest, ".")
					if status, body := f.rest("POST", "/pending/"+id+"/approve", ""); status != http.StatusOK {
						t.Errorf("%d %s", status, body)
					}
				}
				return stderr.Write(p)
			})
			out, err := cmd.Output()
			shown := strings.Contains(string(out), `"shown":[{`) && strings.Contains(string(out), fmt.Sprintf(`{\"n\":%d}`, n))
			if err != nil || !shown || !strings.Contains(string(out), c.want) || f.ranWith(n) != strings.Count(c.want, "it ran") || (c.says == "nothing") != strings.Contains(string(out), `"taken back"`) {
				t.Errorf("%+v: %d ran, %v %s%s", c, f.ranWith(n), err, out, stderr.String())
			}
		})
	}
	all.Wait()
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
