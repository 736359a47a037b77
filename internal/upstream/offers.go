package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// Bounds on a list of what a server offers beside tools.
const (
	maxOffers     = 20_000
	maxOfferBytes = 8 << 20 // they are kept
)

// Offered reads all pages of a list of what a server offers beside tools, on
// the connection that all share: prompts, resources or resource templates, by
// the name that the list has in the result. The bytes are the server's. Its
// errors are problems, or ctx.Err(). Where the server has answered, but not with
// a whole list that can be kept, the error is one of which Answered is true, and
// what there was of the list comes with it.
func (s *Set) Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	switch method {
	case mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates:
	default:
		return nil, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return nil, notStarted(server)
	}
	l, err := sv.ready(ctx)
	if err != nil {
		return nil, sv.explain(ctx, &session.Request{Method: method}, err, false)
	}
	items, err := sv.offered(ctx, l, method, list)
	if err != nil {
		err = sv.explain(ctx, &session.Request{Method: method}, err, false)
		if !Answered(err) {
			items = nil
		}
	}
	return items, err
}

// answeredError is about a list that the server has answered for otherwise than
// with the whole of it.
type answeredError struct{ error }

func (e *answeredError) Unwrap() error { return e.error }

// Answered reports whether a list could not be had although its server has
// answered: with an error, with something else, or with too much.
func Answered(err error) bool {
	_, refused := errors.AsType[*answerError](err)
	_, answered := errors.AsType[*answeredError](err)
	return refused || answered
}

func (s *server) offered(ctx context.Context, l *liveLink, method, list string) (items []json.RawMessage, err error) {
	var params json.RawMessage
	size := 0
	for range maxPages {
		result, err := s.ask(ctx, l.link, method, params)
		if err != nil {
			return items, err
		}
		if size += len(result); size > maxOfferBytes {
			return items, &answeredError{problem.Ownf("the list is longer than %d bytes", maxOfferBytes)}
		}
		found := rawjson.Find(result, list)
		if rawjson.Kind(found) != '[' {
			return items, &answeredError{problem.Ownf("the result has no list of %s", list)}
		}
		_ = rawjson.Elements(found, func(raw []byte) error { // an answer is JSON
			items = append(items, raw)
			return nil
		})
		if len(items) > maxOffers {
			return items[:maxOffers], &answeredError{problem.Ownf("the list has more than %d elements", maxOffers)}
		}
		cursor := rawjson.Find(result, "nextCursor")
		if next, _ := rawjson.String(cursor); next == "" {
			return items, nil
		}
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
	}
	return items, &answeredError{problem.Ownf("the list has more than %d pages", maxPages)}
}
