package adapt

import (
	"context"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/startup"
	"mcpproxy/internal/upstream"
)

// opener opens sessions with one server.
type opener struct {
	sv         *upstream.Server
	sessions   sessions
	sharing    *sharing
	modernOnly atomic.Bool // the server was found to refuse the legacy revisions
}

// openAs opens a session of one kind with initialize. When the server refuses it
// the session is nil and the reply says why.
func (o *opener) openAs(ctx context.Context, initialize *session.Request, w way) (*Session, session.Reply, error) {
	var place *startup.Place
	if w == own && o.sv.Spec.Transport == upstream.Stdio {
		switch err := o.sessions.turn(ctx); {
		case err != nil && !session.TimeIsUp(ctx):
			return nil, session.Reply{}, err
		case err != nil:
			return nil, session.Reply{}, o.sv.Unreachable(problem.Ownf("its process has ended by itself a moment ago"), err)
		}
		var err error
		if place, err = o.sv.Place(ctx); err != nil {
			return nil, session.Reply{}, err
		}
		defer place.Leave(false)
	}
	s, err := o.begin(w, place)
	if err != nil {
		return nil, session.Reply{}, err
	}
	reply, err := s.send(ctx, initialize)
	if err == nil && reply.Error == nil {
		if s.own != nil {
			version, _ := rawjson.String(rawjson.Find(reply.Result, "protocolVersion"))
			s.own.Settled()
			s.own.Agree(version)
		}
		return s, reply, nil
	}
	s.Close()
	if _, ok := err.(*problem.Problem); ok || err == nil {
		return nil, reply, err
	}
	if cause := s.Cause(); cause != nil && cause != link.ErrStopped {
		err = cause
	}
	return nil, session.Reply{}, o.sv.Explain(ctx, initialize, err)
}

// begin makes what a session stands on and minds it. Nothing is said yet.
func (o *opener) begin(w way, place *startup.Place) (*Session, error) {
	s := &Session{sv: o.sv, way: w, ends: make(chan struct{}), ended: make(chan struct{}), born: time.Now()}
	if err := o.sessions.add(s); err != nil {
		return nil, err
	}
	switch w {
	case shared:
		s.peer = newSharedClient(o.sharing)
	case bridged:
		s.peer = newLegacyClient(o.sv)
	case own:
		s.own = newOwnLink(o.sv)
		l, err := o.sv.Open(reports{o.sv.Reports(), &s.own.announced}, place)
		if err != nil {
			close(s.ended)
			o.sessions.remove(s)
			return nil, o.sv.Unreachable(err, err)
		}
		s.own.Link, s.peer = l, s.own
	}
	go o.sessions.mind(s)
	return s, nil
}
