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
func (g *Gate) takeReturned(ctx context.Context, params json.RawMessage) (forServer json.RawMessage, r returned) {
	if !wirejson.MayContain(params, requestState) {
		return params, r
	}
	text, _ := wirejson.String(wirejson.Find(params, requestState))
	if !strings.Contains(text, stateOf) || wirejson.Check([]byte(text), wirejson.Limits{}) != nil {
		return params, r
	}
	id, isText := wirejson.String(wirejson.Find([]byte(text), stateOf))
	if !isText || !g.Ask.Knows(ctx, id) {
		return params, r
	}
	r = returned{question: id, answer: wirejson.Find(wirejson.Find(params, responses), formKey)}
	forServer = params
	for _, name := range [...]string{requestState, responses} {
		if own := wirejson.Find([]byte(text), name); own != nil {
			forServer = wirejson.SetMember(forServer, name, own)
		} else {
			forServer = wirejson.DropMember(forServer, name)
		}
	}
	return forServer, r
}

// asksClient returns what asks the client itself about a call that is held: in its session while
// the call waits; a modern client by the answer to the call, once for each question. nil where the
// client takes no forms.
func (h *hold) asksClient(ctx context.Context, held *ask.HeldCall) func(q *ask.Question) (done func(), waits bool) {
	client := h.call.client
	if client == nil || client.Asker == nil && (!client.Forms || len(h.state("")) > maxState) {
		return nil
	}
	h.approval.asks = "asked in a form of the client, too, which can deny"
	if h.mayApprove(held) {
		h.approval.asks += " or approve"
	}
	if client.Asker != nil {
		return func(q *ask.Question) (func(), bool) { return h.showForm(ctx, held, q.ID), true }
	}
	return func(q *ask.Question) (func(), bool) {
		waits := h.call.returned.question != "" && h.call.returned.question == q.ID
		if !waits {
			h.approval.form = h.inputRequired(held, q.ID)
		}
		return func() {}, waits
	}
}

// showForm makes the client of a session show a form until done.
func (h *hold) showForm(ctx context.Context, held *ask.HeldCall, id string) (done func()) {
	answer, forget := h.call.client.Asker.Ask(mcp.Elicit, h.formFor(held, id))
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case r := <-answer:
			h.takeAnswer(ctx, held, id, r.Result)
		case <-ctx.Done():
		}
	}()
	return func() {
		stop()
		<-over
		forget()
	}
}

// takeAnswer stores the client's answer, if it is one: a form that is declined denies the call. One
// that is closed, or filled in otherwise than it asks, is no answer.
func (h *hold) takeAnswer(ctx context.Context, held *ask.HeldCall, id string, result json.RawMessage) {
	var a ask.Answer
	action, _ := wirejson.String(wirejson.Find(result, "action"))
	content := wirejson.Find(result, "content")
	decision, _ := wirejson.String(wirejson.Find(content, "decision"))
	switch {
	case action == "accept" && decision == approveOnce && isWhole(held):
		a.Approve = true
	case action == "accept" && decision == deny:
		reason, _ := wirejson.String(wirejson.Find(content, "reason"))
		a.Why = wirejson.ClipText(strings.TrimSpace(reason), ask.MaxReason)
	case action == "decline":
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	caller := h.call.caller
	if err := h.gate.Answer(ctx, caller, id, held.Key, a); err != nil {
		h.gate.Logger.Info("the answer of a client's form does not count", "question", id, "actor", caller.Actor.String(), "error", err)
	}
}

// mayApprove reports whether the client's form approves: its token may, no signature is needed, and
// the form has shown all of the arguments.
func (h *hold) mayApprove(held *ask.HeldCall) bool {
	g := h.gate
	return isWhole(held) && (g.Presence == nil || !g.Presence()) && g.Config().ClientMayApprove(h.call.caller.Actor.Name)
}

// isWhole reports whether a form shows all of the arguments.
func isWhole(h *ask.HeldCall) bool { return !h.Cut && len(h.Shown) <= maxFormArguments }

// state is what the client has to return with its answer to a question.
func (h *hold) state(question string) json.RawMessage {
	out := wirejson.AppendString([]byte(`{"`+stateOf+`":`), question)
	for _, name := range [...]string{requestState, responses} {
		if own := wirejson.Find(h.call.params, name); own != nil {
			out = append(append(out, `,"`+name+`":`...), own...)
		}
	}
	return append(out, '}')
}

// inputRequired is the answer to a call whose client is asked first.
func (h *hold) inputRequired(held *ask.HeldCall, id string) json.RawMessage {
	out := append([]byte(`{"resultType":"input_required","inputRequests":{"`+formKey+`":{"method":"`+mcp.Elicit+`","params":`), h.formFor(held, id)...)
	out = wirejson.AppendString(append(out, `}},"`+requestState+`":`...), h.state(id))
	return append(out, '}')
}

// formFor is the form about a call, as the params of the request that shows it. What callers
// and servers chose is quoted, and nothing in it that is not printed.
func (h *hold) formFor(held *ask.HeldCall, id string) json.RawMessage {
	may := h.mayApprove(held)
	var text strings.Builder
	if may {
		text.WriteString("May this call be made, once?\n")
	} else {
		text.WriteString("A call waits for your approval. In this form you can only deny it.\n")
	}
	text.WriteString("\nTool: " + printed(problem.ClipName(held.Tool)) + " of the server " + printed(problem.ClipName(held.Server)))
	text.WriteString("\nCounts as: " + held.Lane + ", since " + printed(held.Because))
	arguments, label := string(wirejson.AppendAsOneLine(nil, held.Shown)), "Arguments: "
	if !isWhole(held) {
		label = "Arguments, of which this is the beginning: "
	}
	if held.Cut {
		arguments, _ = wirejson.String(held.Shown)
	}
	text.WriteString("\n" + label + printed(problem.ClipForDisplay(arguments, maxFormArguments)))
	if held.Reason != "" {
		text.WriteString("\nThe agent claims: " + strconv.Quote(problem.ClipForDisplay(held.Reason, maxFormReason)))
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
