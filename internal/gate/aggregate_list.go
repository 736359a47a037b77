package gate

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The bounds of a page.
const (
	pageItems = 1000
	pageBytes = 4 << 20
)

// listTime bounds how long a list of all servers waits for the slowest.
const listTime = 5 * time.Second

// list answers with the page of a list that begins at the cursor: by name, so
// that a page goes on where the one before ended, whatever has changed meanwhile.
func (s *Aggregate) list(ctx context.Context, r *session.Request, modern bool, l catalog.ListKind, h *knownLists) (session.Reply, error) {
	cursor := ""
	if c := wirejson.Find(r.Params, "cursor"); c != nil && wirejson.Kind(c) != 'n' {
		var ok bool
		if cursor, ok = wirejson.String(c); !ok {
			return session.Reply{Error: session.InvalidParamsError("params.cursor must be a string")}, nil
		}
	}
	if cursor == "" && h != nil {
		now, _ := s.listed(r) // first: what changes meanwhile is announced
		h.gets(l, now)
	}
	after, err := readCursor(l, cursor)
	if err != nil {
		return session.Reply{}, err
	}
	all := s.entries(ctx, r, l)
	at, found := slices.BinarySearchFunc(all, after, func(e *aggregateEntry, after string) int { return strings.Compare(e.name, after) })
	if found {
		at++
	}
	out := append(wirejson.AppendString(bytes.Clone(s.Reply.ResultStart(modern)), []byte(l.Member())), ":["...)
	items, size, last, next := 0, 0, "", ""
	for _, e := range all[at:] {
		raw := e.definition(l)
		if items == pageItems || items > 0 && size+len(raw) > pageBytes {
			next = makeCursor(l, last)
			break
		}
		if items > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		items, size, last = items+1, size+len(raw), e.name
	}
	out = append(out, ']')
	if next != "" {
		out = wirejson.AppendString(append(out, `,"nextCursor":`...), []byte(next))
	}
	if modern {
		out = append(out, caching...)
	}
	return session.Reply{Result: append(out, '}')}, nil
}

// A cursor is the kind of the list and the last name of a page.
func makeCursor(l catalog.ListKind, last string) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{'1', '0' + byte(l)}, last...))
}

func readCursor(l catalog.ListKind, cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 3 || raw[0] != '1' || raw[1] != '0'+byte(l) {
		return "", problem.New(problem.InvalidParameter, "The cursor is not one that was given for this list.",
			"Ask for the first page, without a cursor.").With("parameter", "cursor")
	}
	return string(raw[2:]), nil
}

// entries returns what all servers offer on a list, by name. A server that cannot
// be asked in time is there with what it said last.
func (s *Aggregate) entries(ctx context.Context, r *session.Request, l catalog.ListKind) []*aggregateEntry {
	if l == catalog.ListTools {
		return s.tools(r).callable
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	servers := s.readable(r)
	lists := make([][]*aggregateEntry, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		if !catalog.HasCapability(server, l.Capability()) {
			continue
		}
		asking.Go(func() {
			for _, one := range s.Offers.ListApproved(ctx, server, l) {
				lists[i] = append(lists[i], &aggregateEntry{server: server.Name, own: one.Name, raw: one.Raw})
			}
		})
	}
	asking.Wait()
	all := slices.Concat(lists...)
	nameOffers(l, all)
	return all
}
