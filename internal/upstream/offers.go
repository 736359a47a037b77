package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"mcpproxy/internal/strictjson"
)

// Bounds on a list of what a server offers beside tools.
const (
	maxOffers     = 20_000
	maxOfferBytes = 8 << 20 // they are kept
)

// Offered reads all pages of a list of what a server offers beside tools, on
// the connection that all share: prompts, resources or resource templates, by
// the name that the list has in the result. The bytes are the server's. Its
// errors are problems, or ctx.Err().
func (s *Set) Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	switch method {
	case "prompts/list", "resources/list", "resources/templates/list":
	default:
		return nil, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return nil, notStarted(server)
	}
	l, err := sv.ready(ctx)
	if err != nil {
		return nil, sv.explain(ctx, &Call{Tool: method}, err, false)
	}
	items, err := sv.offered(ctx, l, method, list)
	if err != nil {
		return nil, sv.explain(ctx, &Call{Tool: method}, err, false)
	}
	return items, nil
}

func (s *server) offered(ctx context.Context, l *liveLink, method, list string) (items []json.RawMessage, err error) {
	var params json.RawMessage
	size := 0
	for range maxPages {
		result, err := s.ask(ctx, l.link, l.greeting.version, method, params)
		if err != nil {
			return nil, err
		}
		if size += len(result); size > maxOfferBytes {
			return nil, fmt.Errorf("the list is longer than %d bytes", maxOfferBytes)
		}
		found := strictjson.Find(result, list)
		if strictjson.Kind(found) != '[' {
			return nil, fmt.Errorf("the result has no list of %s", list)
		}
		_ = strictjson.Elements(found, func(raw []byte) error { // an answer is JSON
			items = append(items, raw)
			return nil
		})
		if len(items) > maxOffers {
			return nil, fmt.Errorf("the list has more than %d elements", maxOffers)
		}
		cursor := strictjson.Find(result, "nextCursor")
		if next, _ := strictjson.String(cursor); next == "" {
			return items, nil
		}
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxPages)
}

// NameField is the header that says which tool, prompt or resource a request of
// the modern revision is about.
func NameField(name string) Field { return Field{headerName, headerText(name)} }
