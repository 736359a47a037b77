package upstream

import (
	"context"
	"errors"
	"net/http"

	"mcpproxy/internal/tool"
)

// openShared opens the session of MCPProxy itself over the older transport.
func (s *Set) openShared(sv *server) (link, error) {
	base, err := newHTTPLink(&sv.spec, sv, sv.room, "mcpproxy/"+s.opt.ClientVersion)
	if err != nil {
		return nil, err
	}
	client, err := newExchanger(base.url, sv.spec.reach(base.url))
	if err != nil {
		return nil, err
	}
	base.client = proven(client, s.account(&sv.spec))
	return openSSE(base, sv.log, nil), nil
}

// overSSE says whether the server is reached over the older transport, as far
// as is known.
func (s *server) overSSE() bool { return s.spec.Transport == SSE || s.foundSSE.Load() }

// mayBeOlder says whether a server that is asked over streamable HTTP refuses
// that in the way of one which knows the older transport alone.
func (s *server) mayBeOlder(err error) bool {
	var status *statusError
	if !s.spec.TrySSE || s.overSSE() || !errors.As(err, &status) {
		return false
	}
	switch status.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// introduceOlder tries the older transport. When the server does not have that
// either, it stays with what it said first.
func (s *server) introduceOlder(ctx context.Context, first link, refused error) (link, *liveLink, []tool.Definition, error) {
	s.foundSSE.Store(true)
	l, err := s.open()
	if err != nil {
		return first, nil, nil, refused
	}
	ll, tools, err := s.introduce(ctx, l)
	if err != nil {
		l.stop(s.hard)
		return first, nil, nil, refused
	}
	first.stop(s.hard)
	return l, ll, tools, nil
}
