package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// shows is a client that shows forms in a session, with its behaviour.
type shows struct {
	says  string      // its answer; "" for none
	first func()      // called before it answers
	shown []formShown // the forms that it was asked to show
	taken int         // number of forms that were withdrawn
}

type formShown struct {
	Message         string
	RequestedSchema struct {
		Properties map[string]struct{ Enum []string }
		Required   []string
	}
}

func (s *shows) Ask(method string, params json.RawMessage) (<-chan session.Reply, func()) {
	var f formShown
	if err := json.Unmarshal(params, &f); err != nil || method != "elicitation/create" {
		panic(method + string(params))
	}
	s.shown = append(s.shown, f)
	answer := make(chan session.Reply, 1)
	if s.first != nil {
		s.first()
	}
	if s.says != "" {
		answer <- session.Reply{Result: json.RawMessage(s.says)}
	}
	return answer, func() { s.taken++ }
}

// tokenOf returns a caller with a token of that name.
func tokenOf(name string) auth.Caller {
	c := anAgent
	c.Actor.Name, c.Actor.ID, c.Bounds = name, "1", bounded(policy.Scope{})
	return c
}

// byForm is the text of a configuration in which a client with the token "trusted" may ask its user in a form.
const byForm = `"ask": {"write": "ask", "destructive": "ask", "answer_by_client": ["trusted"]}`

// waiting sets how long a call waits.
func (a *asking) waiting(wait time.Duration) { a.Reload(func(c *config.Config) { c.Ask.Wait = wait }) }

// destroyAs calls the destructive tool, as a client that shows forms.
func (a *asking) destroyAs(who auth.Caller, s *shows, args string) error {
	r := &session.Request{Method: mcp.CallTool, Caller: &who, Asker: s}
	_, err := a.gate.Call(a.T.Context(), LaneCall{CallTool: policy.CallToolDestructive, Name: "s:destroys", Args: json.RawMessage(args), Caller: who, Client: r,
		Declared: reasoned("intent_reason", "to \u202eclean up")})
	return err
}

const approves = `{"action":"accept","content":{"decision":"approve once"}}`

// TestFormContent checks that the form contains everything that the user must know, and allows no other answers.
func TestFormContent(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	a.waiting(time.Millisecond)
	for _, c := range []struct {
		token, args string
		may         bool
	}{
		{"trusted", `{"to":"a\u202eb","password":"correct horse"}`, true},
		{"another", `{"to":"a\u202eb","password":"correct horse"}`, false},
		{"", `{"to":"a\u202eb","password":"correct horse"}`, false},
		{"trusted", `{"to":"a\u202eb","password":"correct horse","x":"` + strings.Repeat("y ", maxFormArguments/2) + `"}`, false},
		{"trusted", `{"to":"a\u202eb","password":"correct horse","x":"` + strings.Repeat("y ", ask.MaxArguments/2) + `"}`, false},
	} {
		s := &shows{}
		p := wantCode(t, c.token, a.destroyAs(tokenOf(c.token), s, c.args), problem.ApprovalPending)
		if len(s.shown) != 1 || s.taken != 1 {
			t.Fatalf("%q: %d forms shown, %d withdrawn", c.token, len(s.shown), s.taken)
		}
		f, id := s.shown[0], p.Detail("approval_id").(string)
		for _, has := range []string{"destroys of the server s", "destructive, because the tool's hints declare it", `"to":"a\u202eb"`, `Reason given by the agent: "to \u202eclean up"`, "mcpproxy pending approve " + id} {
			if !strings.Contains(f.Message, has) {
				t.Errorf("%q: %s is missing in\n%.2000s", c.token, has, f.Message)
			}
		}
		if strings.Contains(f.Message, "correct horse") || strings.Contains(f.Message, "\u202e") || len(f.Message) > maxFormArguments+2000 {
			t.Errorf("%q: %.2000s", c.token, f.Message)
		}
		want := []string{"deny"}
		if c.may {
			want = []string{"approve once", "deny"}
		}
		if got := f.RequestedSchema.Properties["decision"].Enum; fmt.Sprint(got) != fmt.Sprint(want) || f.RequestedSchema.Required[0] != "decision" {
			t.Errorf("%q: %v", c.token, got)
		}
		if strings.Contains(f.Message, "you can only deny") == c.may {
			t.Errorf("%q: %s", c.token, f.Message)
		}
		record := a.Begun[len(a.Begun)-1]
		if d := record.Metadata.Detail; strings.HasSuffix(d, "which can deny or approve") != c.may || !strings.Contains(d, "in a form of the client") {
			t.Errorf("record: %q", d)
		}
	}
}

// TestAnswersInASession checks that the form approves for a token that may approve, and denies for every token. An
// invalid answer changes nothing.
func TestAnswersInASession(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	n := 0
	for name, c := range map[string]struct {
		token, says string
		want        problem.Code
		why         string
	}{
		"approves":                 {"trusted", approves, "", ""},
		"denies":                   {"trusted", `{"action":"accept","content":{"decision":"deny","reason":" Use the copy. "}}`, problem.ApprovalDenied, "Use the copy."},
		"declines":                 {"trusted", `{"action":"decline"}`, problem.ApprovalDenied, ""},
		"cancels":                  {"trusted", `{"action":"cancel"}`, problem.ApprovalPending, ""},
		"cancels, with an answer":  {"trusted", `{"action":"cancel","content":{"decision":"approve once"}}`, problem.ApprovalPending, ""},
		"says nothing":             {"trusted", ``, problem.ApprovalPending, ""},
		"no decision":              {"trusted", `{"action":"accept","content":{}}`, problem.ApprovalPending, ""},
		"no content":               {"trusted", `{"action":"accept"}`, problem.ApprovalPending, ""},
		"another word":             {"trusted", `{"action":"accept","content":{"decision":"approve"}}`, problem.ApprovalPending, ""},
		"another case":             {"trusted", `{"action":"accept","content":{"decision":"Approve once"}}`, problem.ApprovalPending, ""},
		"a list":                   {"trusted", `{"action":"accept","content":{"decision":["approve once"]}}`, problem.ApprovalPending, ""},
		"not in the content":       {"trusted", `{"action":"accept","decision":"approve once"}`, problem.ApprovalPending, ""},
		"true":                     {"trusted", `true`, problem.ApprovalPending, ""},
		"another action":           {"trusted", `{"action":"approve once","content":{"decision":"approve once"}}`, problem.ApprovalPending, ""},
		"another token approves":   {"another", approves, problem.ApprovalPending, ""},
		"another token denies":     {"another", `{"action":"accept","content":{"decision":"deny"}}`, problem.ApprovalDenied, ""},
		"no one approves":          {"", approves, problem.ApprovalPending, ""},
		"no one declines":          {"", `{"action":"decline"}`, problem.ApprovalDenied, ""},
		"a reason that is no text": {"", `{"action":"accept","content":{"decision":"deny","reason":{"x":1}}}`, problem.ApprovalDenied, ""},
	} {
		n++
		a.waiting(time.Minute)
		if c.want == problem.ApprovalPending {
			a.waiting(20 * time.Millisecond)
		}
		before, s := a.asked(), &shows{says: c.says}
		err := a.destroyAs(tokenOf(c.token), s, fmt.Sprintf(`{"n":%d}`, n))
		ran := a.asked() - before
		switch {
		case c.want == "" && (err != nil || ran != 1):
			t.Errorf("%s: %v, %d ran", name, err, ran)
		case c.want != "":
			if p := wantCode(t, name, err, c.want); ran != 0 || p != nil && !strings.HasSuffix(p.Message, c.why) {
				t.Errorf("%s: %v, %d ran", name, err, ran)
			}
		}
		if s.taken != len(s.shown) {
			t.Errorf("%s: %d forms shown, %d withdrawn", name, len(s.shown), s.taken)
		}
	}
	all, err := a.asks.WaitingQuestions(t.Context(), time.Now())
	for _, q := range all {
		if q.By != "" || q.Via != "" {
			t.Errorf("%+v", q)
		}
	}
	if err != nil || len(all) != 13 {
		t.Errorf("%d questions wait, %v", len(all), err)
	}
}

// TestFirstAnswerCounts checks that the first answer decides, from a user or from the form, and that the other answer
// has no effect.
func TestFirstAnswerCounts(t *testing.T) {
	for _, personApproves := range []bool{true, false} {
		a := newAsking(t, textWith(byForm), destroysTool)
		a.waiting(time.Minute)
		s := &shows{says: approves}
		if personApproves {
			s.says = `{"action":"decline"}`
		}
		s.first = func() { a.answer(personApproves) } // before the form
		err := a.destroyAs(tokenOf("trusted"), s, `{}`)
		if personApproves && (err != nil || a.asked() != 1) {
			t.Errorf("after an approval by the user: %v, %d ran", err, a.asked())
		}
		if !personApproves {
			wantCode(t, "denied first", err, problem.ApprovalDenied)
			if a.asked() != 0 {
				t.Error("the denied call ran")
			}
		}
		if s.taken != 1 {
			t.Errorf("the form was withdrawn %d times", s.taken)
		}
	}
}

// TestChangeCancelsTheForm checks that a change while the form is shown cancels it.
func TestChangeCancelsTheForm(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	a.waiting(time.Minute)
	s := &shows{}
	s.first = func() {
		switch len(s.shown) {
		case 1:
			a.use(textWith(byForm + `, "tools_limit": 7`))
			a.waiting(time.Minute)
			a.holder.WakeAll()
		case 2:
			s.says = approves
		}
	}
	if err := a.destroyAs(tokenOf("trusted"), s, `{}`); err != nil || len(s.shown) != 2 || s.taken != 2 || a.asked() != 1 {
		t.Errorf("%v: %d forms shown, %d withdrawn, %d ran", err, len(s.shown), s.taken, a.asked())
	}
}

// modernly is a client of the modern protocol that supports forms.
type modernly struct {
	a      *asking
	who    auth.Caller
	by     func(r *session.Request) (session.Reply, error)
	params string // without the returned state and answer
}

func (a *asking) modernly(token string) *modernly {
	m := &modernly{a: a, who: tokenOf(token), params: `"name":"destroys","arguments":{"n":1}`}
	m.who.SessionID = ""
	m.by = func(r *session.Request) (session.Reply, error) { return a.relay(a.T.Context(), r) }
	return m
}

func (m *modernly) call(more string) (session.Reply, error) {
	return m.by(&session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage("{" + m.params + more + "}"), Caller: &m.who, Forms: true})
}

// asked makes the call, expects a form, and returns the state.
func (m *modernly) asked(more string) (state string) {
	m.a.T.Helper()
	reply, err := m.call(more)
	var r struct {
		ResultType    string
		InputRequests map[string]struct {
			Method string
			Params formShown
		}
		RequestState string
	}
	if err != nil || json.Unmarshal(reply.Result, &r) != nil || r.ResultType != "input_required" || r.InputRequests["approval"].Method != "elicitation/create" || r.RequestState == "" {
		m.a.T.Fatalf("%v %s", err, reply.Result)
	}
	return r.RequestState
}

func back(state, answer string) string {
	more := `,"requestState":` + string(wirejson.AppendString(nil, state))
	if answer != "" {
		more += `,"inputResponses":{"approval":` + answer + `}`
	}
	return more
}

// TestModernFormAnswers checks that the result of the held call contains the form at once. A repeated call with the
// answer continues, and one without an answer waits like others.
func TestModernFormAnswers(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	a.waiting(time.Minute)
	m := a.modernly("trusted")
	state := m.asked("")
	if again := m.asked(""); again != state {
		t.Errorf("the repeated call got another question: %s, %s", state, again)
	}
	if len(a.Begun) != 1 || a.Ended[0].Status != activity.Held || len(a.Appended) != 1 || a.Appended[0].Metadata.ErrorCode != string(problem.ApprovalPending) {
		t.Errorf("events: %q", a.Events)
	}
	if _, err := m.call(back(state, approves)); err != nil || a.asked() != 1 {
		t.Errorf("approved: %v, %q", err, a.Events)
	}
	if next := m.asked(back(state, approves)); next == state || a.asked() != 1 { // replayed
		t.Errorf("the answer was accepted twice: %q", a.Events)
	}
	// A client that returns without an answer waits, and any user's answer continues its call.
	state = m.asked("")
	done := make(chan error, 1)
	go func() { _, err := m.call(back(state, `{"action":"cancel"}`)); done <- err }()
	a.waits(1)
	a.answer(true)
	if err := <-done; err != nil || a.asked() != 2 {
		t.Errorf("after an approval by a user: %v, %q", err, a.Events)
	}
	a.waiting(20 * time.Millisecond)
	state = m.asked("")
	for _, answer := range []string{"", `{"action":"cancel"}`, `{"action":"accept","content":{}}`, `7`} {
		_, err := m.call(back(state, answer))
		wantCode(t, "without an answer: "+answer, err, problem.ApprovalPending)
	}
	_, err := m.call(back(state, `{"action":"decline"}`))
	wantCode(t, "declined", err, problem.ApprovalDenied)
	_, err = m.call(back(state, approves))
	wantCode(t, "and then approved", err, problem.ApprovalDenied)
	if a.asked() != 2 {
		t.Errorf("%q", a.Events)
	}
}

// TestForgedStates checks that an answer is valid only with the state that was issued for this call of this client,
// with this definition and configuration, and only from a client that may approve.
func TestForgedStates(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	a.waiting(20 * time.Millisecond)
	m := a.modernly("trusted")
	state := m.asked("")
	other := a.modernly("trusted")
	other.params = `"name":"destroys","arguments":{"n":2}`
	of := other.asked("")
	stranger := a.modernly("another")
	foreign := stranger.asked("")
	for name, forged := range map[string]string{
		"nothing": "", "no object": "mcpproxy/approval", "of another call": of, "of another client": foreign, "no such question": `{"mcpproxy/approval":"aaaaaaaaaaaaaaaa"}`,
		"twice": strings.TrimSuffix(state, "}") + `,"mcpproxy/approval":"x"}`, "cut": state[:len(state)-3], "another case": strings.ToUpper(state), "a list": "[" + state + "]",
	} {
		m.asked(back(forged, approves))
		if a.asked() != 0 {
			t.Fatalf("%s: the call ran", name)
		}
	}
	_, err := stranger.call(back(foreign, approves))
	wantCode(t, "who may not approve", err, problem.ApprovalPending)
	stranger.asked(back(state, approves))
	nobody := a.modernly("")
	_, err = nobody.call(back(nobody.asked(""), approves))
	wantCode(t, "nobody", err, problem.ApprovalPending)
	inSession := a.modernly("trusted")
	inSession.who.SessionID = "s" // a client with a session returns no state
	inSession.by = func(r *session.Request) (session.Reply, error) { r.Forms = false; return a.relay(t.Context(), r) }
	_, err = inSession.call(back(state, approves))
	wantCode(t, "in a session", err, problem.ApprovalPending)
	a.use(textWith(byForm + `, "tools_limit": 7`))
	m.asked(back(state, approves))
	a.SetToolsOn("s", strings.Replace(destroysTool, "Destroy a", "Destroy every", 1))
	m.asked(back(state, approves))
	if a.asked() != 0 {
		t.Errorf("%q", a.Events)
	}
}

// TestAnswersForTheServer checks that a client's answers to its server stay with the call while MCPProxy asks the
// client, and that answers to MCPProxy do not reach the server. A state of another MCPProxy belongs to the server.
func TestAnswersForTheServer(t *testing.T) {
	a := newAsking(t, textWith(byForm), destroysTool)
	a.waiting(time.Minute)
	var sent string
	a.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		sent = string(r.Params)
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	for _, own := range []string{"", `,"requestState":"the server's"`, `,"requestState":"s","inputResponses":{"q":{"action":"accept","content":{"n":9007199254740993}}}`, `,"inputResponses":{}`,
		`,"requestState":"{\"mcpproxy/approval\":\"aaaaaaaaaaaaaaaa\"}","inputResponses":{"approval":` + approves + `}`} {
		m := a.modernly("trusted")
		before := a.asked()
		state := m.asked(own)
		if _, err := m.call(back(state, approves)); err != nil || a.asked() != before+1 {
			t.Fatalf("%s: %v", own, err)
		}
		var got, want map[string]any
		if err := json.Unmarshal([]byte(sent), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte("{"+m.params+own+"}"), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the server got %s, want {%s%s}", sent, m.params, own)
		}
	}
	// The same applies when the call no longer needs approval.
	m := a.modernly("trusted")
	state := m.asked("")
	a.use(textWith(`"tools_limit": 7`))
	if _, err := m.call(back(state, approves)); err != nil || strings.Contains(sent, "requestState") || strings.Contains(sent, "inputResponses") {
		t.Errorf("%v, the server got %s", err, sent)
	}
}
