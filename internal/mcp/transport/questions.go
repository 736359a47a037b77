package transport

import (
	"encoding/json"
	"maps"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// Questions of a server on a connection that several clients share (LinkOptions.Asks).
//
// A question belongs to the request in whose reply stream it arrives. On a stream for all messages (stdio, SSE, the
// notification stream of streamable HTTP) it belongs to the requests in flight if all of them are of one client, and
// then to the newest. A request that a client has abandoned counts as in flight until it is answered. Every other
// question is refused. Questions that do not belong to a request are also refused: roots apply to the whole session,
// and the end of a dialog in a browser is reported outside of requests.
//
// Each question gets one answer: that of the client, or a refusal, at the latest when the request ends.

// maxAsked limits the open questions of one request.
const maxAsked = 100

// isAboutRequest reports whether a question can be about a single request.
func isAboutRequest(e *session.Event) bool {
	switch e.Method {
	case mcp.CreateMessage:
		return true
	case mcp.Elicit:
		mode, _ := wirejson.String(wirejson.Find(e.Params, "mode"))
		return mode == "" || mode == "form"
	}
	return false
}

// requestOver is the answer to a question whose request has ended.
var requestOver = &wirejson.RPCError{Code: wirejson.CodeInternal, Message: "the request that the question is about has ended"}

// allowQuestions prepares the link for questions, if it has them. postLater is set.
func (l *linkCore) allowQuestions() {
	if l.Asks {
		l.pending.refuse = l.postLater
	}
}

// routeQuestion delivers a question to the client whose request has caused it, or refuses it. from is the request in whose
// reply stream it arrived, or nil.
func (l *linkCore) routeQuestion(m *wirejson.Message, e session.Event, from *pendingRequest) {
	if l.Asks && mcp.QuestionCapability(m.Method) != "" {
		// Many servers ask for roots once, when the connection begins, and work without them.
		counts := m.Method != mcp.ListRoots || from != nil || l.roots.Swap(true)
		if counts {
			l.Reports.QuestionAsked(m.Method)
		}
		if isAboutRequest(&e) && l.pending.deliverQuestion(e, from) {
			return
		}
		if counts {
			l.Reports.QuestionRefused()
		}
	}
	l.postLater(newQuestionRefusal(m, NoCapability))
}

// deliverQuestion delivers a question to the request that it belongs to, and reports whether there is one.
func (p *pendingRequests) deliverQuestion(e session.Event, from *pendingRequest) bool {
	to := p.openQuestion(e, from)
	if to != nil && from != nil {
		to.deliverEvents([]session.Event{e}) // in the order of its stream
	}
	return to != nil
}

// openQuestion registers a question, and returns its request, or nil. Unless the request reads the stream itself, it
// queues the question.
func (p *pendingRequests) openQuestion(e session.Event, from *pendingRequest) *pendingRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := from
	if to == nil {
		to = p.onlyClient()
	}
	id := string(e.ID)
	if to == nil || !to.canAnswerQuestions() || to.asked >= maxAsked || p.asked[id] != nil || from == nil && !p.queueEvent(to, e) {
		return nil
	}
	if p.asked == nil {
		p.asked = map[string]*pendingRequest{}
	}
	p.asked[id] = to
	to.asked++
	return to
}

// onlyClient returns the newest request that takes questions if all requests in flight are of one client, and nil
// otherwise. The caller holds mu.
func (p *pendingRequests) onlyClient() (newest *pendingRequest) {
	var any *pendingRequest
	for _, to := range p.byID {
		switch {
		case to.listenID != nil || to.Request == nil || to.Method == mcp.Ping: // causes no question
			continue
		case any != nil && (to.Owner == nil || to.Owner != any.Owner):
			return nil
		}
		any = to
		if to.canAnswerQuestions() && (newest == nil || to.id > newest.id) {
			newest = to
		}
	}
	if newest == nil || p.orphans.mayAsk(&newest.sentRequest) {
		return nil
	}
	return newest
}

// canAnswerQuestions reports whether the caller of s can be asked.
func (s *sentRequest) canAnswerQuestions() bool {
	return s.Say != nil && s.Call == nil && s.listenID == nil
}

// closeQuestion closes a question that is answered, and reports whether it was open.
func (p *pendingRequests) closeQuestion(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.asked[string(id)]
	if to != nil {
		to.asked--
		delete(p.asked, string(id))
	}
	return to != nil
}

// withdrawQuestion passes on that the server has withdrawn a question, and reports whether it was open.
func (p *pendingRequests) withdrawQuestion(e session.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := string(wirejson.Find(e.Params, "requestId"))
	to := p.asked[id]
	if to == nil {
		return false
	}
	to.asked--
	delete(p.asked, id)
	p.queueEvent(to, e)
	return true
}

// refuseOpenQuestions refuses the questions of a request that has ended.
func (p *pendingRequests) refuseOpenQuestions(e *pendingRequest) {
	if p.refuse == nil {
		return
	}
	p.mu.Lock()
	var open []string
	if e.asked > 0 {
		maps.DeleteFunc(p.asked, func(id string, of *pendingRequest) bool {
			if of == e {
				open = append(open, id)
			}
			return of == e
		})
	}
	e.asked = 0
	p.mu.Unlock()
	for _, id := range open {
		p.refuse(wirejson.AppendError(nil, json.RawMessage(id), requestOver))
	}
}
