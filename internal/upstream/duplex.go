package upstream

import (
	"sync/atomic"

	"mcpproxy/internal/jsonrpc"
)

// duplex is a connection on which everything that a server says comes one
// after the other: answers, notifications, requests. One goroutine reads it and
// gives every answer to the goroutine that waits for it.
type duplex struct {
	*loss
	wait *pending
	up   inbound
	mail *mailbox // of the client whose own the connection is; nil: it is everybody's
	log  *serverLog
	tell func(msg []byte) // sends without waiting

	heard atomic.Uint64
}

func newDuplex(up inbound, log *serverLog, mail *mailbox) *duplex {
	return &duplex{loss: newLoss(), wait: newPending(), up: up, mail: mail, log: log}
}

func (l *duplex) activity() uint64 { return l.heard.Load() }
func (l *duplex) inFlight() int    { return int(l.wait.count.Load()) }

// end makes the link lost, unless it is.
func (l *duplex) end(err error) {
	l.fail(err)
	l.wait.fail(l.cause())
}

// routeAll routes the messages of one line or event, and says whether it could be
// read. A request that it answers without being readable fails.
func (l *duplex) routeAll(data []byte, kept bool) bool {
	if split(data, func(m jsonrpc.Message) { l.route(&m, kept) }) != nil {
		l.wait.rejectBroken(data)
		return false
	}
	return true
}

func (l *duplex) route(m *jsonrpc.Message, kept bool) {
	switch {
	case m.IsResponse():
		l.wait.resolve(m, kept)
	case l.mail != nil:
		l.forClient(m)
	case l.wait.subscribed(m):
		changes(l.up, m.Method)
	case m.IsRequest():
		l.tell(answerTo(m))
	case m.Method == methodProgress:
		l.wait.progress(m.Params)
	case m.Method == methodMessage:
		if !l.wait.message(m.Params) {
			l.log.remark("the server says " + string(m.Params[:min(len(m.Params), maxRemarkText)]))
		}
	case changes(l.up, m.Method):
		l.up.heard(m.Method, m.Params)
	case m.Method == methodUpdated && l.up.heard(m.Method, m.Params):
	default:
		l.wait.only(note{m.Method, nil, m.Params}, func(r *request) bool { return r.say != nil })
	}
}
