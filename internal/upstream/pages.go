package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Bounds on what a server lists. all pages of its list of tools together may be
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

// pages read a list of which a server tells page by page.
type pages struct {
	list        string // its name in the results
	elements    string // what they are called
	bytes, most int    // of all pages together, and elements
	null        bool   // null is an empty list
	free        int    // bytes that are read without a pause
	odd         func(what string)
}

// answeredError is about a list that the server has answered for otherwise than
// with the whole of it.
type answeredError struct{ error }

func (e *answeredError) Unwrap() error { return e.error }

func answered(format string, args ...any) error { return &answeredError{problem.Ownf(format, args...)} }

// read reads all pages, until ctx or done ends, and returns the elements as
// pieces of the results. With an error it returns those that there are.
func (p *pages) read(ctx context.Context, done <-chan struct{}, ask asker) (all []json.RawMessage, err error) {
	var params json.RawMessage
	size, asked, again := 0, map[string]bool{}, false
	for range maxPages {
		result, err := ask(ctx, params)
		switch {
		case err == nil:
		case params == nil || !rejectsRequest(err):
			return all, err
		case again:
			p.odd("it rejects its own cursor for the next page of its " + p.elements + ", so that only those before it are known")
			return all, nil
		default: // the cursor may have expired: the list is read once more from its beginning
			again, all, params, asked = true, nil, nil, map[string]bool{}
			continue
		}
		if size += len(result); size > p.bytes {
			return all, answered("the list is longer than %d bytes", p.bytes)
		}
		found := wirejson.Find(result, p.list)
		switch {
		case wirejson.Kind(result) != '{':
			return all, answered("the result is not an object")
		case wirejson.Kind(found) != '[' && !(p.null && string(found) == "null"):
			return all, answered("the result has no list of %s", p.list)
		}
		_ = wirejson.Elements(found, func(raw []byte) error { // an answer is JSON
			all = append(all, raw)
			return nil
		})
		if len(all) > p.most {
			return all[:p.most], answered("the list has more than %d %s", p.most, p.elements)
		}
		cursor := wirejson.Find(result, "nextCursor")
		switch next, isText := wirejson.String(cursor); {
		case cursor == nil || string(cursor) == "null" || isText && next == "": // in the revisions spoken here an empty one ends the list
			return all, nil
		case !isText && wirejson.Kind(cursor) != '0':
			p.odd("the next page of its " + p.elements + " is named by neither text nor number, so that only those before it are known")
			return all, nil
		case asked[string(cursor)]:
			p.odd("it names the same next page of its " + p.elements + " again and again, so that the list ends there")
			return all, nil
		case !isText:
			p.odd("it names the next page of its " + p.elements + " by a number, where the protocol has a text")
		}
		asked[string(cursor)] = true
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
		if beyond := min(len(result), size-p.free); beyond > 0 {
			select {
			case <-done: // which the next request says
			case <-ctx.Done():
			case <-time.After(time.Duration(beyond) * time.Second / listRate):
			}
		}
	}
	return all, answered("the list has more than %d pages", maxPages)
}

// rejectsRequest reports whether the server answered that the request itself is invalid.
func rejectsRequest(err error) bool {
	var code int
	if answer, ok := errors.AsType[*transport.AnswerError](err); ok {
		code = answer.Code
	} else if answer, ok := errors.AsType[*wirejson.RPCError](err); ok {
		code = answer.Code
	}
	return code == wirejson.CodeInvalidParams || code == wirejson.CodeInvalidRequest
}

// ReadTools reads all pages of a list of tools, until ctx or done ends. Nothing is
// made of them before the last one has come: it may never come. Definitions that cannot be used are left out; each has bytes
// of its own.
func (b *base) ReadTools(ctx context.Context, done <-chan struct{}, ask asker) ([]*tool.Definition, error) {
	list := pages{list: "tools", elements: "tools", bytes: b.MaxMessage, most: maxTools, null: true, free: freeList, odd: b.odd}
	all, err := list.read(ctx, done, ask)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	tools, seen := make([]*tool.Definition, 0, len(all)), make(map[string]bool, len(all))
	for _, raw := range all {
		d, err := tool.ParseDefinition(b.Spec.Name, bytes.Clone(raw))
		switch {
		case err != nil:
			b.log.Remark("a tool is left out: " + err.Error())
		case seen[d.ID.Tool]:
			b.log.Remark("a tool is left out: there is another one of that name: " + d.ID.Tool)
		default:
			seen[d.ID.Tool] = true
			tools = append(tools, &d)
		}
	}
	return tools, nil
}
