package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// modernVersion is the revision whose requests stand for themselves: there is
// no session, and nothing that a server says outside of an answer but on a
// subscription.
const modernVersion = "2026-07-28"

const (
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerVersion = "Mcp-Protocol-Version"
)

// What a server was found to speak, remembered for the next connection.
const (
	eraUnknown = iota
	eraLegacy
	eraModern
)

// probeTime is how long a server may take to say whether it is a modern one.
// Old ones may say nothing at all.
const probeTime = 5 * time.Second

// errShy is a process that ends when it is asked what it does not know.
var errShy = errors.New("the server ended itself when it was asked for its revision")

// greet finds out what the server speaks and does the handshake of it. What
// was found is remembered until a connection fails.
func (s *server) greet(ctx context.Context, l link) (*greeting, error) {
	era := s.era.Swap(eraUnknown)
	if s.overSSE() {
		era = eraLegacy // the modern revision does not have that transport
	}
	silent := false
	if era != eraLegacy {
		pctx, cancel := context.WithTimeout(ctx, min(probeTime, s.connectTime()/2))
		g, err := s.discover(pctx, l)
		cancel()
		switch {
		case err == nil:
			s.era.Store(eraModern)
			return g, nil
		case l.cause() != nil && l.pid() != 0:
			s.era.Store(eraLegacy)
			return nil, errShy
		case ctx.Err() != nil:
			return nil, err
		}
		silent = errors.Is(err, context.DeadlineExceeded)
	}
	g, err := s.initialize(ctx, l)
	var refused *answerError
	if silent && errors.As(err, &refused) {
		// It was only slow to start, and would not be asked twice.
		if g, again := s.discover(ctx, l); again == nil {
			s.era.Store(eraModern)
			return g, nil
		}
	}
	if err == nil {
		s.era.Store(eraLegacy)
	}
	return g, err
}

// discover asks the server what it is, as the modern revision has it.
func (s *server) discover(ctx context.Context, l link) (*greeting, error) {
	reply, err := s.askDiscover(ctx, l)
	if err == nil && offersModern(reply.Error) {
		reply, err = s.askDiscover(ctx, l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", methodDiscover, err)
	}
	if reply.Error != nil {
		return nil, &answerError{reply.Error.Code}
	}
	m, err := members(reply.Result)
	if err != nil {
		return nil, err
	}
	var versions []string
	if json.Unmarshal(m["supportedVersions"], &versions) != nil || !slices.Contains(versions, modernVersion) {
		return nil, errors.New("the server speaks no modern revision of the protocol that we know")
	}
	g := &greeting{version: modernVersion, info: strictjson.Find(m["_meta"], "io.modelcontextprotocol/serverInfo")}
	g.offer(m)
	l.negotiated(modernVersion)
	return g, nil
}

func (s *server) askDiscover(ctx context.Context, l link) (Reply, error) {
	id := s.ids.Add(1)
	return l.roundTrip(ctx, &request{id: id, msg: jsonrpc.AppendRequest(nil, id, methodDiscover, modernParams(nil, s.opt.ClientVersion)),
		fields: []Field{{headerVersion, modernVersion}, {headerMethod, methodDiscover}}})
}

// offersModern says whether a server that refuses a revision names the modern
// one among those it takes: then it is not to be asked in an older one.
func offersModern(e *jsonrpc.Error) bool {
	if e == nil || e.Code != jsonrpc.CodeUnsupportedVersion {
		return false
	}
	var versions []string
	_ = json.Unmarshal(strictjson.Find(e.Data, "supported"), &versions) // none, if it cannot be read
	return slices.Contains(versions, modernVersion)
}

// modernParams are params that say of themselves what a modern request has to.
func modernParams(params json.RawMessage, clientVersion string) json.RawMessage {
	return jsonrpc.SetMember(params, "_meta", modernMeta(strictjson.Find(params, "_meta"), clientVersion))
}

// modernMeta adds to a _meta, which may be nil, who asks and what it can do:
// nothing, since nobody is behind our own requests whom a server could ask.
func modernMeta(meta json.RawMessage, clientVersion string) json.RawMessage {
	out := append([]byte(nil), `{"io.modelcontextprotocol/protocolVersion":"`+modernVersion+`",`+
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcpproxy","version":`...)
	out = append(appendString(out, clientVersion), '}')
	inside := bytes.TrimSpace(meta)
	if len(inside) > 2 {
		inside = bytes.TrimLeft(inside[1:], " \t\r\n")
	}
	if len(inside) < 2 || inside[0] == '}' {
		return append(out, '}')
	}
	return append(append(out, ','), inside...)
}

// modernize makes a call of our own one that stands for itself.
func (s *Set) modernize(r *request, c *Call) error {
	c.Meta = modernMeta(c.Meta, s.opt.ClientVersion)
	r.fields = append([]Field{{headerMethod, methodCallTool}, {headerName, headerText(c.Tool)}}, mirrored(c.Listed, c.Arguments)...)
	return sound(r.fields)
}

// watch keeps a subscription open on which a modern server says that what it
// lists has changed, until ctx or the link ends, or the server has no such thing.
func (s *server) watch(ctx context.Context, l *liveLink) {
	pause := minListenPause
	for {
		start := time.Now()
		err := s.watchOnce(ctx, l)
		var refused *answerError
		switch {
		case ctx.Err() != nil || l.link.cause() != nil:
			return
		case errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound:
			return
		case time.Since(start) >= steadyListen:
			pause = minListenPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxListenPause)
	}
}

// watchOnce subscribes once and waits for the end of it.
func (s *server) watchOnce(ctx context.Context, l *liveLink) error {
	id := s.ids.Add(1)
	raw := fmt.Append(nil, id)
	params := modernParams(json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`), s.opt.ClientVersion)
	r := &relayed{id: id, Request: &Request{ID: raw, Method: methodListen, Params: params,
		Fields: []Field{{headerMethod, methodListen}},
		Events: func(e Event) {
			switch e.Method {
			case methodAgreed:
				l.watched.Store(true)
				s.missed() // what changed before nobody heard
			default:
				changes(s, e.Method)
			}
		}}}
	l.watching.Add(1)
	defer l.watching.Add(-1)
	defer l.watched.Store(false)
	reply, err := l.link.relay(ctx, r)
	if err == nil && reply.Error != nil {
		return &answerError{reply.Error.Code}
	}
	return err
}
