package mcpserver

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// enableClientQuestions lets MCPProxy ask the client through its writer, if it shows forms: in a session, about a
// tool call.
func (m *message) enableClientQuestions(out *clientWriter) {
	if !m.modern && m.Method == mcp.CallTool && m.entry.forms {
		m.asks, m.req.Asker = out, m
	}
}

// Ask implements session.Asker.
func (m *message) Ask(method string, params json.RawMessage) (<-chan session.Reply, func()) {
	id := wirejson.AppendString(nil, m.s.asking+rand.Text()) // no server uses this prefix
	answer, forget := m.entry.questions.Register(id)
	m.told = true
	_ = m.asks.queueOrWait(session.Event{Method: method, ID: id, Params: params}) // otherwise no one answers
	return answer, func() {
		if forget() {
			m.asks.queueOptional(session.Event{Method: mcp.Cancelled,
				Params: append(append([]byte(`{"requestId":`), id...), `,"reason":"It was answered elsewhere, or the call no longer waits."}`...)})
		}
	}
}

// deliverAnswerToProxyQuestion handles a response to a question of MCPProxy itself and reports whether it is one, also if
// it is too late.
func (m *message) deliverAnswerToProxyQuestion() bool {
	id, _ := wirejson.String(m.ID)
	if !strings.HasPrefix(id, m.s.asking) {
		return false
	}
	m.entry.questions.DeliverAnswer(m.ID, session.Reply{Result: m.Result, Error: m.Error})
	return true
}
