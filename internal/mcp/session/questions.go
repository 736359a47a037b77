package session

import (
	"bytes"
	"encoding/json"
	"sync"
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
