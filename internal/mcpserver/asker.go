package mcpserver

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// mayAsk has the client asked by the outlet, where it takes forms: in its session, about
// a call of a tool.
func (m *message) mayAsk(out *outlet) {
	if !m.modern && m.Method == mcp.CallTool && m.entry.forms {
		m.asks, m.req.Asker = out, m
	}
}

// Ask implements session.Asker.
func (m *message) Ask(method string, params json.RawMessage) (<-chan session.Reply, func()) {
	id := wirejson.AppendString(nil, m.s.asking+rand.Text()) // which no server has
	answer, forget := m.entry.questions.Open(id)
	m.told = true
	_ = m.asks.tell(session.Event{Method: method, ID: id, Params: params}) // else nobody answers
	return answer, func() {
		if forget() {
			m.asks.pass(session.Event{Method: mcp.Cancelled,
				Params: append(append([]byte(`{"requestId":`), id...), `,"reason":"It was answered elsewhere, or the call waits no longer."}`...)})
		}
	}
}

// answersUs takes a response that is to a question of ours, and reports whether it is. One
// that comes too late is no server's either.
func (m *message) answersUs() bool {
	id, _ := wirejson.String(m.ID)
	if !strings.HasPrefix(id, m.s.asking) {
		return false
	}
	m.entry.questions.Answer(m.ID, session.Reply{Result: m.Result, Error: m.Error})
	return true
}
