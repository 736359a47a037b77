package session

import (
	"encoding/json"
	"testing"
)

// TestQuestions checks that only the first answer to an open question counts, in any spelling of its id.
func TestQuestions(t *testing.T) {
	var q ProxyQuestionTracker
	answer, forget := q.Register(json.RawMessage(`"a"`))
	text := json.RawMessage(`{"n":1}`)
	if q.DeliverAnswer(json.RawMessage(`"b"`), Reply{}) || q.DeliverAnswer(json.RawMessage(`a`), Reply{}) || !q.DeliverAnswer(json.RawMessage(`"\u0061"`), Reply{Result: text}) || q.DeliverAnswer(json.RawMessage(`"a"`), Reply{}) {
		t.Error("a second answer was accepted")
	}
	copy(text, "xxxxxxx") // text belongs to the message
	if r := <-answer; string(r.Result) != `{"n":1}` || forget() {
		t.Errorf("got %s", r.Result)
	}
	_, forget = q.Register(json.RawMessage(`7`))
	if !forget() || forget() || q.DeliverAnswer(json.RawMessage(`7`), Reply{}) || len(q.open) != 0 {
		t.Error("an answer to a withdrawn question was accepted")
	}
}
