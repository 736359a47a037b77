package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/process"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/tool"
)

// Bounds on what a server lists. All pages of its list of tools together may be
// as long as a message may.
const (
	maxPages      = 1_000
	maxTools      = 20_000
	maxOffers     = 20_000
	maxOfferBytes = 8 << 20 // they are kept
)

// A list beyond freeList bytes is read at listRate bytes a second, so that one
// without an end does not keep all processors busy until it is too long.
const (
	freeList = 4 << 20
	listRate = 8 << 20
)

// asker sends a request of our own and returns its result.
type asker func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// nextPage returns the params that ask for the page after a cursor.
func nextPage(cursor json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
}

// toolPages read a server's list of tools.
type toolPages struct {
	server string
	limit  int // bytes of all pages together
	log    *process.Log
}

// read reads all pages, until ctx or done ends. Definitions that cannot be used
// are left out.
func (p *toolPages) read(ctx context.Context, done <-chan struct{}, ask asker) ([]tool.Definition, error) {
	var (
		tools  []json.RawMessage // nothing is made of them before the last page has come: it may never come
		size   int
		params json.RawMessage
	)
	for range maxPages {
		result, err := ask(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w", err)
		}
		page, cursor, err := readPage(result)
		size += len(result)
		tools = append(tools, page...)
		switch {
		case err != nil:
		case size > p.limit:
			err = problem.Ownf("the list is longer than %d bytes", p.limit)
		case len(tools) > maxTools:
			err = problem.Ownf("the list has more than %d tools", maxTools)
		}
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w", err)
		}
		if rawjson.Kind(cursor) != '"' || string(cursor) == `""` { // in the revisions spoken here an empty one ends the list
			return p.definitions(tools), nil
		}
		params = nextPage(cursor)
		if beyond := min(len(result), size-freeList); beyond > 0 {
			select {
			case <-done: // which the next request says
			case <-ctx.Done():
			case <-time.After(time.Duration(beyond) * time.Second / listRate):
			}
		}
	}
	return nil, problem.Ownf("list the tools: the list has more than %d pages", maxPages)
}

// definitions returns those of a list that can be used, each with bytes of its own.
func (p *toolPages) definitions(list []json.RawMessage) []tool.Definition {
	tools, seen := make([]tool.Definition, 0, len(list)), make(map[string]bool, len(list))
	for _, raw := range list {
		d, err := tool.ParseDefinition(p.server, bytes.Clone(raw))
		switch {
		case err != nil:
			p.log.Remark("a tool is left out: " + err.Error())
		case seen[d.ID.Tool]:
			p.log.Remark("a tool is left out: there is another one of that name: " + d.ID.Tool)
		default:
			seen[d.ID.Tool] = true
			tools = append(tools, d)
		}
	}
	return tools
}

// readPage returns the definitions on a page and the cursor of the next one, as
// pieces of the result: a page may be large.
func readPage(result json.RawMessage) (tools []json.RawMessage, next json.RawMessage, err error) {
	var list json.RawMessage
	if rawjson.Members(result, func(name, value []byte) error {
		switch string(name) {
		case "tools":
			list = value
		case "nextCursor":
			next = value
		}
		return nil
	}) != nil {
		return nil, nil, problem.Ownf("the result is not an object")
	}
	if string(list) == "null" {
		return nil, next, nil
	}
	if rawjson.Elements(list, func(raw []byte) error {
		tools = append(tools, raw)
		return nil
	}) != nil {
		return nil, nil, problem.Ownf("the result has no list of tools")
	}
	return tools, next, nil
}

// answeredError is about a list that the server has answered for otherwise than
// with the whole of it.
type answeredError struct{ error }

func (e *answeredError) Unwrap() error { return e.error }

// readOffers reads all pages of a list by its name in the results.
func readOffers(ctx context.Context, list string, ask asker) (items []json.RawMessage, err error) {
	var params json.RawMessage
	size := 0
	for range maxPages {
		result, err := ask(ctx, params)
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
		params = nextPage(cursor)
	}
	return items, &answeredError{problem.Ownf("the list has more than %d pages", maxPages)}
}
