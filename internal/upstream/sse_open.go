package upstream

import (
	"context"
	"errors"
	"net/http"

	"mcpproxy/internal/link"
	"mcpproxy/internal/tool"
)

// overSSE says whether the server is reached over the older transport, as far
// as is known.
func (s *server) overSSE() bool { return s.spec.Transport == SSE || s.foundSSE.Load() }

// mayBeOlder says whether a server that is asked over streamable HTTP refuses
// that in the way of one which knows the older transport alone.
func (s *server) mayBeOlder(err error) bool {
	var status *link.StatusError
	if !s.spec.TrySSE || s.overSSE() || !errors.As(err, &status) {
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// introduceOlder tries the older transport. When the server does not have that
// either, it stays with what it said first.
func (s *server) introduceOlder(ctx context.Context, first link.Link, refused error) (link.Link, *liveLink, []tool.Definition, error) {
	s.foundSSE.Store(true)
	l, err := s.open()
	if err != nil {
		return first, nil, nil, refused
	}
	ll, tools, err := s.introduce(ctx, l)
	if err != nil {
		l.Stop(s.hard)
		return first, nil, nil, refused
	}
	first.Stop(s.hard)
	return l, ll, tools, nil
}
