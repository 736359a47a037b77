package session

import (
	"encoding/json"
	"testing"
)

// TestQuestions: the first answer to an open question counts, in any spelling of its id, and is not replaced.
func TestQuestions(t *testing.T) {
	var q ProxyQuestionTracker
	answer, forget := q.Register(json.RawMessage(`"a"`))
	text := json.RawMessage(`{"n":1}`)
	if q.DeliverAnswer(json.RawMessage(`"b"`), Reply{}) || q.DeliverAnswer(json.RawMessage(`a`), Reply{}) || !q.DeliverAnswer(json.RawMessage(`"\u0061"`), Reply{Result: text}) || q.DeliverAnswer(json.RawMessage(`"a"`), Reply{}) {
		t.Error("another answer counts")
	}
	copy(text, "xxxxxxx") // which belongs to the message
	if r := <-answer; string(r.Result) != `{"n":1}` || forget() {
		t.Errorf("%s", r.Result)
	}
	_, forget = q.Register(json.RawMessage(`7`))
	if !forget() || forget() || q.DeliverAnswer(json.RawMessage(`7`), Reply{}) || len(q.open) != 0 {
		t.Error("what is forgotten is answered")
	}
}
