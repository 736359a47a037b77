package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// ProxyQuestionTracker tracks MCPProxy's own questions that one client has not answered. The zero value is ready for
// use.
type ProxyQuestionTracker struct {
	mu   sync.Mutex // guards open
	open map[string]chan Reply
}

// Register registers a question with an ID. forget withdraws it and reports whether it was unanswered. A later answer
// is ignored.
func (q *ProxyQuestionTracker) Register(id json.RawMessage) (answer <-chan Reply, forget func() (unanswered bool)) {
	key, come := questionKey(id), make(chan Reply, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]chan Reply{}
	}
	q.open[key] = come
	return come, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		there := q.open[key] == come
		if there {
			delete(q.open, key)
		}
		return there
	}
}

// DeliverAnswer delivers the client's answer. It reports whether the answer belongs to an open question, which is true
// only for the first answer.
func (q *ProxyQuestionTracker) DeliverAnswer(id json.RawMessage, r Reply) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := questionKey(id)
	come := q.open[key]
	if come == nil {
		return false
	}
	delete(q.open, key)
	r.Result = bytes.Clone(r.Result)
	come <- r
	return true
}

// PrefixRequestID returns the ID of a server's request to the client with a prefix, which must not contain a colon.
func PrefixRequestID(prefix string, id json.RawMessage) json.RawMessage {
	return wirejson.AppendString(nil, prefix+":"+string(id))
}

// SplitRequestID returns the prefix of PrefixRequestID, and the ID that the server used.
func SplitRequestID(id json.RawMessage) (prefix string, own json.RawMessage, ok bool) {
	s, _ := wirejson.String(id)
	prefix, rest, ok := strings.Cut(s, ":")
	own = json.RawMessage(rest)
	if !ok || !json.Valid(own) || wirejson.Kind(own) != '"' && wirejson.Kind(own) != '0' {
		return "", nil, false
	}
	return prefix, own, true
}
