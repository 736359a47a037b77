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

// The possible answers in a form.
const (
	approveOnce = "approve once"
	deny        = "deny"
)

// The size limits of a form, in bytes. A form cannot approve arguments that it does not show completely.
const (
	maxFormArguments = 8 << 10
	maxFormReason    = 500
)

// maxState limits the request state that a client has to return, in bytes. If the state is larger, the client is not
// asked.
const maxState = 1 << 20

// answerTime limits the time for storing an answer.
const answerTime = 10 * time.Second

// The members of the params that a modern client returns. The state contains the ID of the question, which cannot be
// guessed and belongs to one call of one client, so a forged state has no effect. It also contains the state and the
// responses that the client sent for the server.
const (
	stateOf      = "mcpproxy/approval"
	formKey      = "approval"
	requestState = "requestState"
	responses    = "inputResponses"
)

// extractReturnedAnswer removes the client's answer to the gate from the params, and restores the state and responses
// for the server. It leaves unknown states unchanged: they belong to another MCPProxy behind this one.
func (g *Gate) extractReturnedAnswer(ctx context.Context, params json.RawMessage) (forServer json.RawMessage, r returnedAnswer) {
	if !wirejson.MayContain(params, requestState) {
		return params, r
	}
	text, _ := wirejson.String(wirejson.Find(params, requestState))
	if !strings.Contains(text, stateOf) || wirejson.Check([]byte(text), wirejson.Limits{}) != nil {
		return params, r
	}
	id, isText := wirejson.String(wirejson.Find([]byte(text), stateOf))
	if !isText || !g.Ask.KnowsQuestion(ctx, id) {
		return params, r
	}
	r = returnedAnswer{question: id, answer: wirejson.Find(wirejson.Find(params, responses), formKey)}
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

// newClientAsker returns a function that asks the client itself about a held call; nil if the client supports no
// forms. A client with a session is asked while the call waits. A modern client is asked in the result of the call,
// once per question.
func (h *approvalWait) newClientAsker(ctx context.Context, held *ask.HeldCall) func(q *ask.Question) (done func(), waits bool) {
	client := h.call.client
	if client == nil || client.Asker == nil && (!client.Forms || len(h.requestStateJSON("")) > maxState) {
		return nil
	}
	h.approval.clientFormText = "also asked in a form of the client, which can deny"
	if h.clientMayApprove(held) {
		h.approval.clientFormText += " or approve"
	}
	if client.Asker != nil {
		return func(q *ask.Question) (func(), bool) { return h.showFormInSession(ctx, held, q.ID), true }
	}
	return func(q *ask.Question) (func(), bool) {
		waits := h.call.returned.question != "" && h.call.returned.question == q.ID
		if !waits {
			h.approval.formResult = h.inputRequiredResult(held, q.ID)
		}
		return func() {}, waits
	}
}

// showFormInSession makes the client of a session show a form until done.
func (h *approvalWait) showFormInSession(ctx context.Context, held *ask.HeldCall, id string) (done func()) {
	answer, forget := h.call.client.Asker.Ask(mcp.Elicit, h.formParams(held, id))
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case r := <-answer:
			h.storeClientAnswer(ctx, held, id, r.Result)
		case <-ctx.Done():
		}
	}()
	return func() {
		stop()
		<-over
		forget()
	}
}

// storeClientAnswer stores the client's answer. A declined form denies the call. A closed form, or
// unexpected content, is not an answer.
func (h *approvalWait) storeClientAnswer(ctx context.Context, held *ask.HeldCall, id string, result json.RawMessage) {
	var a ask.Answer
	action, _ := wirejson.String(wirejson.Find(result, "action"))
	content := wirejson.Find(result, "content")
	decision, _ := wirejson.String(wirejson.Find(content, "decision"))
	switch {
	case action == "accept" && decision == approveOnce && showsAllArguments(held):
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
		h.gate.Logger.Info("the answer in the client's form is not valid", "question", id, "actor", caller.Actor.String(), "error", err)
	}
}

// clientMayApprove reports whether the form can approve. This requires that the token allows it, that no signature is
// needed, and that the form shows all arguments.
func (h *approvalWait) clientMayApprove(held *ask.HeldCall) bool {
	g := h.gate
	return showsAllArguments(held) && (g.Presence == nil || !g.Presence()) && g.Config().ClientMayApprove(h.call.caller.Actor.TokenName())
}

// showsAllArguments reports whether a form shows all of the arguments.
func showsAllArguments(h *ask.HeldCall) bool { return !h.Cut && len(h.Shown) <= maxFormArguments }

// requestStateJSON returns the state that a client has to return with its answer to a question.
func (h *approvalWait) requestStateJSON(question string) json.RawMessage {
	out := wirejson.AppendString([]byte(`{"`+stateOf+`":`), question)
	for _, name := range [...]string{requestState, responses} {
		if own := wirejson.Find(h.call.params, name); own != nil {
			out = append(append(out, `,"`+name+`":`...), own...)
		}
	}
	return append(out, '}')
}

// inputRequiredResult returns the result that asks a modern client for its answer.
func (h *approvalWait) inputRequiredResult(held *ask.HeldCall, id string) json.RawMessage {
	out := append([]byte(`{"resultType":"input_required","inputRequests":{"`+formKey+`":{"method":"`+mcp.Elicit+`","params":`), h.formParams(held, id)...)
	out = wirejson.AppendString(append(out, `}},"`+requestState+`":`...), h.requestStateJSON(id))
	return append(out, '}')
}

// formParams returns the form about a call, as params of the request that shows it. Text of callers
// and servers is quoted and escaped.
func (h *approvalWait) formParams(held *ask.HeldCall, id string) json.RawMessage {
	may := h.clientMayApprove(held)
	var text strings.Builder
	if may {
		text.WriteString("Approve this call once?\n")
	} else {
		text.WriteString("A call waits for your approval. In this form you can only deny it.\n")
	}
	text.WriteString("\nTool: " + escapeUnprintable(problem.ClipName(held.Tool)) + " of the server " + escapeUnprintable(problem.ClipName(held.Server)))
	text.WriteString("\nLane: " + held.Lane + ", because " + escapeUnprintable(held.Because))
	arguments, label := string(wirejson.AppendAsOneLine(nil, held.Shown)), "Arguments: "
	if !showsAllArguments(held) {
		label = "Arguments (only the beginning is shown): "
	}
	if held.Cut {
		arguments, _ = wirejson.String(held.Shown)
	}
	text.WriteString("\n" + label + escapeUnprintable(problem.ClipForDisplay(arguments, maxFormArguments)))
	if held.Reason != "" {
		text.WriteString("\nReason given by the agent: " + strconv.Quote(problem.ClipForDisplay(held.Reason, maxFormReason)))
	}
	text.WriteString("\n\nYou can also answer in MCPProxy's web UI, or run: mcpproxy pending approve " + id + ". The first answer counts.\n" +
		"If you decline this form, the call is denied. If you close it, the call keeps waiting.")
	options := `["` + deny + `"]`
	if may {
		options = `["` + approveOnce + `","` + deny + `"]`
	}
	out := wirejson.AppendString([]byte(`{"message":`), text.String())
	return append(out, `,"requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":`+options+`},`+
		`"reason":{"type":"string","title":"Reason","description":"For a denial: the text that the agent receives."}},"required":["decision"]}}`...)
}

// escapeUnprintable escapes unprintable characters, such as those that change the direction of text.
func escapeUnprintable(text string) string {
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
