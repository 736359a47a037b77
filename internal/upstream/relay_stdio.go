package upstream

import (
	"bytes"
	"context"
	"sync"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

func (l *stdioLink) relay(ctx context.Context, r *relayed) (Reply, error) {
	return l.carry(ctx, r, l.roundTrip)
}

// carry passes a client's request on, with an id of ours in the place of its
// own: on the connection there are other requests.
func (l *duplex) carry(ctx context.Context, r *relayed, roundTrip func(context.Context, *request) (Reply, error)) (Reply, error) {
	params := r.Params
	req := &request{id: r.id, say: r.Events, cancelable: r.Method != methodInitialize,
		token: progressToken(params), keepsToken: l.mail != nil}
	if req.token != nil && !req.keepsToken {
		params = withToken(params, r.id)
	}
	if r.Method == methodListen {
		req.listens = r.ID
	}
	req.msg = jsonrpc.AppendRequest(nil, r.id, r.Method, params)
	reply, err := roundTrip(ctx, req)
	if req.listens != nil && reply.Result != nil {
		reply.Result = setSubscription(reply.Result, req.listens)
	}
	return reply, err
}

// forClient hands on what the process of one client says: to the request that
// it belongs to, else to the only one under way, which keeps the order, else
// to the client's stream, else to the newest request, else it is kept.
func (l *duplex) forClient(m *jsonrpc.Message) {
	changes(l.up, m.Method)
	n := note{m.Method, m.ID, m.Params}
	told := m.Method == methodProgress && l.wait.byToken(n) ||
		l.wait.only(n, func(r *request) bool { return r.say != nil }) ||
		l.mail.put(n, true) || l.wait.newest(n) || l.mail.put(n, false)
	if !told && m.IsRequest() {
		l.tell(cannotAsk(m))
	}
}

// byToken gives a progress notification to the request with its token.
func (p *pending) byToken(n note) bool {
	token := strictjson.Find(n.params, "progressToken")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.byID {
		if e.r.say != nil && e.r.token != nil && bytes.Equal(e.r.token, token) {
			return e.add(n)
		}
	}
	return false
}

func (l *stdioLink) respond(_ context.Context, msg []byte) error { return l.in.send(msg) }

// overhear attaches the client's stream.
func (l *duplex) overhear(ctx context.Context, say func(Event), opened func()) error {
	if l.mail == nil {
		return &statusError{status: 405}
	}
	detach, err := l.mail.attach(say)
	if err != nil {
		return err
	}
	defer detach()
	opened()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.lost():
		return l.cause()
	}
}

// Bounds on what is kept for a client that has no stream open.
const (
	maxKept      = 256
	maxKeptBytes = 1 << 20
)

// mailbox is where a process leaves what belongs to no request of its client.
type mailbox struct {
	mu   sync.Mutex // guards what follows, and orders what is said
	say  func(Event)
	kept []note
	size int
}

// put says n to the client's stream, or, unless it must be said at once, keeps
// it until there is one. The oldest that is kept gives way.
func (b *mailbox) put(n note, atOnce bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.say != nil:
		b.say(Event{n.method, n.id, n.params})
		return true
	case atOnce || len(n.params) > maxKeptBytes:
		return false
	}
	for len(b.kept) >= maxKept || b.size+len(n.params) > maxKeptBytes {
		b.size -= len(b.kept[0].params)
		b.kept = b.kept[1:]
	}
	b.kept = append(b.kept, note{n.method, bytes.Clone(n.id), bytes.Clone(n.params)})
	b.size += len(n.params)
	return true
}

// attach makes say get what is kept and what comes, until detach.
func (b *mailbox) attach(say func(Event)) (detach func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.say != nil {
		return nil, errHasStream
	}
	for _, n := range b.kept {
		say(Event{n.method, n.id, n.params})
	}
	b.say, b.kept, b.size = say, nil, 0
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.say = nil
	}, nil
}
