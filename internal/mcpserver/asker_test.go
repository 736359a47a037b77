package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/gate"
	own "mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

const takesForms = `{"elicitation":{}}`

// openWith opens a session with what its client can do.
func (h *harness) openWith(capabilities string) string {
	h.t.Helper()
	a := h.post(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`}}`).is(200)
	return a.header.Get(own.HeaderSession)
}

// asking makes each call ask its client something, and answers with the client's reply, or with "taken back" if no one waits
// for it.
func (h *harness) asking(wait <-chan struct{}) {
	h.gw.call = func(ctx ctxT, r gate.LaneCall) (gate.CallResult, error) {
		if r.Client.Asker == nil {
			return gate.CallResult{Result: json.RawMessage(`{"content":[],"said":"cannot be asked"}`)}, nil
		}
		answer, done := r.Client.Asker.Ask(own.Elicit, json.RawMessage(`{"message":"May I?"}`))
		said := session.Reply{Result: json.RawMessage(`"taken back"`)}
		select {
		case said = <-answer:
		case <-wait:
		}
		done()
		if said.Error != nil {
			said.Result = json.RawMessage(`"an error"`)
		}
		return gate.CallResult{Result: json.RawMessage(`{"content":[],"said":` + string(said.Result) + `}`)}, nil
	}
}

// TestAskingTheClient: a client that supports forms is asked on the stream of its call. The answer counts once, only in its
// session, and only while the call waits for it; otherwise the question is cancelled.
func TestAskingTheClient(t *testing.T) {
	h := newHarness(t)
	wait := make(chan struct{})
	h.asking(wait)
	mine, other := h.openWith(takesForms), h.openWith(takesForms)
	call := func() (*openStream, string) {
		st := h.openStream("POST", map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", own.HeaderSession: mine},
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{}}}`)
		var asked struct {
			ID     json.RawMessage
			Method string
			Params struct{ Message string }
		}
		if text := st.next(); json.Unmarshal([]byte(text), &asked) != nil || asked.Method != "elicitation/create" || asked.Params.Message != "May I?" || len(asked.ID) < 50 {
			t.Fatal(text)
		}
		return st, string(asked.ID)
	}
	say := func(in, id, what string) {
		h.post(map[string]string{own.HeaderSession: in}, `{"jsonrpc":"2.0","id":`+id+`,`+what+`}`).is(202)
	}
	st, id := call()
	say(other, id, `"result":{"from":"another session"}`)
	say(mine, `"1"`, `"result":{"to":"nothing"}`)
	say(mine, id, `"result":{"action":"accept"}`)
	say(mine, id, `"result":{"action":"again"}`)
	if got := st.next(); !strings.Contains(got, `"said":{"action":"accept"}`) {
		t.Error(got)
	}
	st, id = call()
	say(mine, id, `"error":{"code":-1,"message":"no forms"}`)
	if got := st.next(); !strings.Contains(got, "an error") {
		t.Error(got)
	}
	st, id = call()
	wait <- struct{}{}
	if got := st.next(); !strings.Contains(got, `"notifications/cancelled"`) || !strings.Contains(got, `"requestId":`+id) {
		t.Error(got)
	}
	if got := st.next(); !strings.Contains(got, "taken back") {
		t.Error(got)
	}
	say(mine, id, `"result":{"action":"accept"}`)
	for name, answer := range map[string]func() []byte{
		"declares nothing": func() []byte { return h.callLegacy(h.openWith(`{}`), callToolRead, `{}`).body },
		"takes other forms": func() []byte {
			return h.callLegacy(h.openWith(`{"elicitation":{"url":{}}}`), callToolRead, `{}`).body
		},
		"takes no stream": func() []byte {
			return h.legacy(mine, "tools/call", `{"name":"call_tool_read"}`, "Accept", "application/json").body
		},
		"modern": func() []byte { return h.callModern(callToolRead, `{}`).body },
	} {
		if got := string(answer()); !strings.Contains(got, "cannot be asked") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestAskingInLines: the same on a connection of lines.
func TestAskingInLines(t *testing.T) {
	h := newHarness(t)
	h.asking(nil)
	l := h.lines(h.onSocket(), "/mcp")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{}}}}}`)
	l.hear()
	l.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool_read","arguments":{}}}`)
	var asked struct{ ID json.RawMessage }
	if text := l.hear(); json.Unmarshal([]byte(text), &asked) != nil || !strings.Contains(text, "May I?") {
		t.Fatal(text)
	}
	l.say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, asked.ID)
	if got := l.hear(); !strings.Contains(got, `"said":{"action":"decline"}`) {
		t.Error(got)
	}
}

// TestAskingTheOfficialClient: the SDK's client shows the form, and does not show a cancelled one.
func TestAskingTheOfficialClient(t *testing.T) {
	h := newHarness(t)
	wait := make(chan struct{})
	h.asking(wait)
	ended := make(chan struct{})
	client := mcp.NewClient(&mcp.Implementation{Name: "oracle", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Message != "May I?" {
				t.Errorf("%+v", r.Params)
			}
			wait <- struct{}{}
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		},
	})
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.http.URL + "/mcp", HTTPClient: h.http.Client()}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: callToolRead, Arguments: map[string]any{"name": "a:b"}}); err != nil {
		t.Error(err)
	}
	<-ended
}
