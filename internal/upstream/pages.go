package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Limits for lists. All pages of a list of tools together may be as large as one message.
const (
	maxPages          = 1_000
	maxTools          = 20_000
	maxPrimitives     = 20_000
	maxPrimitiveBytes = 8 << 20 // they are kept in memory
)

// A list is read without throttling up to unthrottledBytes, then at listBytesPerSecond, so that an endless list does
// not use all cores until it reaches the limit.
const (
	unthrottledBytes   = 4 << 20
	listBytesPerSecond = 8 << 20
)

// requestFunc sends a request of MCPProxy itself and returns its result.
type requestFunc func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// pageReader reads a paginated list.
type pageReader struct {
	list         string // its name in the results
	elements     string // name of its elements, for messages
	bytes, most  int    // of all pages together, and number of elements
	nullIsEmpty  bool   // null is an empty list
	unthrottled  int    // bytes that are read without throttling
	addDeviation func(what string)
}

// incompleteListError means that the server answered, but not with a complete list.
type incompleteListError struct{ error }

func (e *incompleteListError) Unwrap() error { return e.error }

func newIncompleteListError(format string, args ...any) error {
	return &incompleteListError{problem.TrustedTextErrorf(format, args...)}
}

// readAllPages reads all pages until ctx or done ends. It returns the elements as slices of the results. If it fails,
// it returns the elements so far and an error.
func (p *pageReader) readAllPages(ctx context.Context, done <-chan struct{}, ask requestFunc) (all []json.RawMessage, err error) {
	var params json.RawMessage
	size, asked, again := 0, map[string]bool{}, false
	for range maxPages {
		result, err := ask(ctx, params)
		switch {
		case err == nil:
		case params == nil || !isRequestRejection(err):
			return all, err
		case again:
			p.addDeviation("it rejects its own cursor for the next page of its " + p.elements + ", so only the pages before it are known")
			return all, nil
		default: // the cursor may have expired: read the list again from its beginning
			again, all, params, asked = true, nil, nil, map[string]bool{}
			continue
		}
		if size += len(result); size > p.bytes {
			return all, newIncompleteListError("the list is longer than %d bytes", p.bytes)
		}
		found := wirejson.Find(result, p.list)
		switch {
		case wirejson.Kind(result) != '{':
			return all, newIncompleteListError("the result is not an object")
		case wirejson.Kind(found) != '[' && !(p.nullIsEmpty && string(found) == "null"):
			return all, newIncompleteListError("the result has no list of %s", p.list)
		}
		_ = wirejson.EachElement(found, func(raw []byte) error { // a result is valid JSON
			all = append(all, raw)
			return nil
		})
		if len(all) > p.most {
			return all[:p.most], newIncompleteListError("the list has more than %d %s", p.most, p.elements)
		}
		cursor := wirejson.Find(result, "nextCursor")
		switch next, isText := wirejson.String(cursor); {
		case cursor == nil || string(cursor) == "null" || isText && next == "": // in the supported protocol versions an empty cursor ends the list
			return all, nil
		case !isText && wirejson.Kind(cursor) != '0':
			p.addDeviation("the next page of its " + p.elements + " has a cursor that is neither a string nor a number, so only the pages before it are known")
			return all, nil
		case asked[string(cursor)]:
			p.addDeviation(repeatedCursor(p.elements))
			return all, nil
		case !isText:
			p.addDeviation("it names the next page of its " + p.elements + " by a number, but a cursor must be a string")
		}
		asked[string(cursor)] = true
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
		if beyond := min(len(result), size-p.unthrottled); beyond > 0 {
			select {
			case <-done: // the next request reports it
			case <-ctx.Done():
			case <-time.After(time.Duration(beyond) * time.Second / listBytesPerSecond):
			}
		}
	}
	return all, newIncompleteListError("the list has more than %d pages", maxPages)
}

// repeatedCursor returns the text of a protocol deviation: the server's pages lead in a circle.
func repeatedCursor(elements string) string {
	return "it names the same next page of its " + elements + " again and again, so that the list ends there"
}

// ReportRepeatedCursor records that a list ended for a client because its pages lead in a circle.
func (b *serverBase) ReportRepeatedCursor(method string) {
	elements := "elements"
	if method == mcp.ListTools {
		elements = "tools"
	}
	b.addDeviation(repeatedCursor(elements))
}

// isRequestRejection reports whether the server answered that the request itself is invalid.
func isRequestRejection(err error) bool {
	var code int
	if answer, ok := errors.AsType[*transport.ServerRPCError](err); ok {
		code = answer.Code
	} else if answer, ok := errors.AsType[*wirejson.RPCError](err); ok {
		code = answer.Code
	}
	return code == wirejson.CodeInvalidParams || code == wirejson.CodeInvalidRequest
}

// ReadToolPages reads all pages of a list of tools until ctx or done ends. It parses them after the last page, which
// may never arrive. It skips invalid definitions. Each definition has its own copy of its bytes.
func (b *serverBase) ReadToolPages(ctx context.Context, done <-chan struct{}, ask requestFunc) ([]*tool.Definition, error) {
	list := pageReader{list: "tools", elements: "tools", bytes: b.MaxMessage, most: maxTools, nullIsEmpty: true, unthrottled: unthrottledBytes, addDeviation: b.addDeviation}
	all, err := list.readAllPages(ctx, done, ask)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	tools, seen := make([]*tool.Definition, 0, len(all)), make(map[string]bool, len(all))
	var leftOut []string
	for i, raw := range all {
		d, err := tool.ParseDefinition(b.Spec.Name, bytes.Clone(raw))
		switch {
		case err != nil:
			leftOut = append(leftOut, fmt.Sprintf("tool %d of its list is left out: %v", i+1, errors.Unwrap(err)))
		case seen[d.ID.Tool]:
			leftOut = append(leftOut, fmt.Sprintf("tool %d of its list is left out, because another one has the same name: %s", i+1, problem.ClipName(d.ID.Tool)))
		default:
			seen[d.ID.Tool] = true
			tools = append(tools, &d)
		}
	}
	b.setLeftOut(leftOut)
	return tools, nil
}
