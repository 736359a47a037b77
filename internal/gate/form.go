package gate

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// What is asked in a form.
const (
	approveOnce = "approve once"
	deny        = "deny"
)

// The bounds of what a form shows, in bytes. What it cannot show whole it cannot approve.
const (
	maxFormArguments = 8 << 10
	maxFormReason    = 500
)

// maxState bounds, in bytes, the state that a client has to return: with more to say to the
// server it is not asked itself.
const maxState = 1 << 20

// answerTime is how long an answer that has come may take to be stored.
const answerTime = 10 * time.Second

// The names in what such a client returns. The state names the question, which cannot be guessed
// and is about one call of one client, so that there is nothing in it to forge; beside it
// stands what the client has said to the server itself.
const (
	stateOf      = "mcpproxy/approval"
	formKey      = "approval"
	requestState = "requestState"
	responses    = "inputResponses"
)

// takeReturned takes out of the call what the client returns to us, and puts back what is for the
// server. Another MCPProxy behind this one has states of its own, which are not known here.
func (c *call) takeReturned(ctx context.Context, params json.RawMessage) (forServer json.RawMessage) {
	if !c.stateless || !wirejson.MayName(params, requestState) {
		return params
	}
	text, _ := wirejson.String(wirejson.Find(params, requestState))
	if !strings.Contains(text, stateOf) || wirejson.Check([]byte(text), wirejson.Limits{}) != nil {
		return params
	}
	id, isText := wirejson.String(wirejson.Find([]byte(text), stateOf))
	if !isText || !c.gate.Ask.Knows(ctx, id) {
		return params
	}
	c.returned = &returned{question: id, answer: wirejson.Find(wirejson.Find(params, responses), formKey)}
	forServer = params
	for _, name := range [...]string{requestState, responses} {
		if own := wirejson.Find([]byte(text), name); own != nil {
			forServer = wirejson.SetMember(forServer, name, own)
		} else {
			forServer = wirejson.DropMember(forServer, name)
		}
	}
	return forServer
}

// asksClient returns what has the client itself asked about a call that is held: in its session
// while it waits; of the modern revision by the answer to the call, once for each question. nil
// where it takes no forms.
func (c *call) asksClient(ctx context.Context, h *ask.HeldCall) func(q *ask.Question) (done func(), waits bool) {
	inSession := c.request.Asker != nil
	if !inSession && (!c.request.Forms || len(c.state("")) > maxState) {
		return nil
	}
	c.pending.asks = "asked in a form of the client, too, which can deny"
	if c.mayApprove(h) {
		c.pending.asks += " or approve"
	}
	if inSession {
		return func(q *ask.Question) (func(), bool) { return c.showForm(ctx, h, q.ID), true }
	}
	return func(q *ask.Question) (func(), bool) {
		waits := c.returned != nil && c.returned.question == q.ID
		if !waits {
			c.pending.form = c.inputRequired(h, q.ID)
		}
		return func() {}, waits
	}
}

// asksFirst reports whether the answer to the call is that its client is asked.
func (c *call) asksFirst() bool { return c.pending != nil && c.pending.form != nil }

// showForm has the client of a session show a form until done.
func (c *call) showForm(ctx context.Context, h *ask.HeldCall, id string) (done func()) {
	answer, forget := c.request.Asker.Ask(mcp.Elicit, c.formFor(h, id))
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case r := <-answer:
			c.takeAnswer(ctx, h, id, r.Result)
		case <-ctx.Done():
		}
	}()
	return func() {
		stop()
		<-over
		forget()
	}
}

// takeAnswer has the client's answer count, if it is one: a form that is declined denies the
// call, one that is closed, or filled in otherwise than it asks, says nothing.
func (c *call) takeAnswer(ctx context.Context, h *ask.HeldCall, id string, result json.RawMessage) {
	var a ask.Answer
	action, _ := wirejson.String(wirejson.Find(result, "action"))
	content := wirejson.Find(result, "content")
	decision, _ := wirejson.String(wirejson.Find(content, "decision"))
	switch {
	case action == "accept" && decision == approveOnce && isWhole(h):
		a.Approve = true
	case action == "accept" && decision == deny:
		reason, _ := wirejson.String(wirejson.Find(content, "reason"))
		a.Why = wirejson.Clip(strings.TrimSpace(reason), ask.MaxReason)
	case action == "decline":
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	if err := c.gate.Answer(ctx, c.caller, id, h.Key, a); err != nil {
		c.gate.Logger.Info("the answer of a client's form does not count", "question", id, "actor", c.caller.Actor.String(), "error", err)
	}
}

// mayApprove reports whether the client's form approves: its token may, no person has to sign
// it, and it has been shown all of the arguments.
func (c *call) mayApprove(h *ask.HeldCall) bool {
	return isWhole(h) && (c.gate.Presence == nil || !c.gate.Presence()) && c.gate.Config().ClientMayApprove(c.caller.Actor.Name)
}

// isWhole reports whether a form shows all of the arguments.
func isWhole(h *ask.HeldCall) bool { return !h.Cut && len(h.Shown) <= maxFormArguments }

// state is what the client has to return with its answer to a question.
func (c *call) state(question string) json.RawMessage {
	out := wirejson.AppendString([]byte(`{"`+stateOf+`":`), question)
	for _, name := range [...]string{requestState, responses} {
		if own := wirejson.Find(c.request.Params, name); own != nil {
			out = append(append(out, `,"`+name+`":`...), own...)
		}
	}
	return append(out, '}')
}

// inputRequired is the answer to a call whose client is asked first.
func (c *call) inputRequired(h *ask.HeldCall, id string) json.RawMessage {
	out := append([]byte(`{"resultType":"input_required","inputRequests":{"`+formKey+`":{"method":"`+mcp.Elicit+`","params":`), c.formFor(h, id)...)
	out = wirejson.AppendString(append(out, `}},"`+requestState+`":`...), c.state(id))
	return append(out, '}')
}

// formFor is the form about a call, as the params of the request that shows it. What callers
// and servers chose is quoted, and nothing in it that is not printed.
func (c *call) formFor(h *ask.HeldCall, id string) json.RawMessage {
	may := c.mayApprove(h)
	var text strings.Builder
	if may {
		text.WriteString("May this call be made, once?\n")
	} else {
		text.WriteString("A call waits for your approval. In this form you can only deny it.\n")
	}
	text.WriteString("\nTool: " + printed(problem.Brief(h.Tool)) + " of the server " + printed(problem.Brief(h.Server)))
	text.WriteString("\nCounts as: " + h.Lane + ", since " + printed(h.Because))
	arguments, label := string(wirejson.AppendLine(nil, h.Shown)), "Arguments: "
	if !isWhole(h) {
		label = "Arguments, of which this is the beginning: "
	}
	if h.Cut {
		arguments, _ = wirejson.String(h.Shown)
	}
	text.WriteString("\n" + label + printed(problem.Shown(arguments, maxFormArguments)))
	if h.Reason != "" {
		text.WriteString("\nThe agent claims: " + strconv.Quote(problem.Shown(h.Reason, maxFormReason)))
	}
	text.WriteString("\n\nApprove or deny it in MCPProxy's web UI too, or with: mcpproxy pending approve " + id + ". The first answer counts.\n" +
		"To decline this form denies the call. To close it leaves the call waiting.")
	options := `["` + deny + `"]`
	if may {
		options = `["` + approveOnce + `","` + deny + `"]`
	}
	out := wirejson.AppendString([]byte(`{"message":`), text.String())
	return append(out, `,"requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":`+options+`},`+
		`"reason":{"type":"string","title":"Reason","description":"Of a denial: what the agent is told."}},"required":["decision"]}}`...)
}

// printed writes what is not printed, such as what turns the direction of text, as its escape.
func printed(text string) string {
	var out strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			out.WriteRune(r)
		} else {
			escaped := strconv.QuoteToASCII(string(r))
			out.WriteString(escaped[1 : len(escaped)-1])
		}
	}
	return out.String()
}
