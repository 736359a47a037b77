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
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The limits of a page.
const (
	pageItems = 1000
	pageBytes = 4 << 20
)

// listTime limits how long a list of all servers waits for the slowest server.
const listTime = 5 * time.Second

// listPage returns the page of a list that begins at the cursor. Pages are sorted by name, so that a
// page continues where the previous one ended even if the list has changed.
func (s *AggregateEndpoint) listPage(ctx context.Context, r *session.Request, modern bool, l catalog.ListKind, h *clientKnownLists) (session.Reply, error) {
	cursor := ""
	if c := wirejson.Find(r.Params, "cursor"); c != nil && wirejson.Kind(c) != 'n' {
		var ok bool
		if cursor, ok = wirejson.String(c); !ok {
			return session.Reply{Error: session.InvalidParamsError("params.cursor must be a string")}, nil
		}
	}
	if cursor == "" && h != nil {
		now, _ := s.currentListDigests(r) // read before the list, so that a change in between is announced
		h.markSent(l, now)
	}
	after, err := decodeCursor(l, cursor)
	if err != nil {
		return session.Reply{}, err
	}
	all := s.listEntries(ctx, r, l)
	at, found := slices.BinarySearchFunc(all, after, func(e *aggregateListEntry, after string) int { return strings.Compare(e.name, after) })
	if found {
		at++
	}
	out := append(wirejson.AppendString(bytes.Clone(s.Reply.ResultPrefix(modern)), []byte(l.ResultMember())), ":["...)
	items, size, last, next := 0, 0, "", ""
	for _, e := range all[at:] {
		raw := e.renamedDefinition(l)
		if items == pageItems || items > 0 && size+len(raw) > pageBytes {
			next = encodeCursor(l, last)
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
		out = append(out, cachingJSON...)
	}
	return session.Reply{Result: append(out, '}')}, nil
}

// encodeCursor returns the cursor after a page: the kind of the list and the last name of the page.
func encodeCursor(l catalog.ListKind, last string) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{'1', '0' + byte(l)}, last...))
}

// decodeCursor returns the last name of the page before the cursor.
func decodeCursor(l catalog.ListKind, cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 3 || raw[0] != '1' || raw[1] != '0'+byte(l) {
		return "", problem.New(problem.InvalidParameter, "The cursor is unknown or belongs to another list.",
			"Request the first page, without a cursor.").With("parameter", "cursor")
	}
	return string(raw[2:]), nil
}

// listEntries returns the entries of a list of all servers, by name. For a server that does not answer
// in time it returns the last known entries.
func (s *AggregateEndpoint) listEntries(ctx context.Context, r *session.Request, l catalog.ListKind) []*aggregateListEntry {
	if l == catalog.ListTools {
		return s.toolTableForCaller(r).callable
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	servers, apps := s.serversWithReadablePrimitives(r), s.toolTableForCaller(r).apps
	lists := make([][]*aggregateListEntry, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		if !catalog.HasCapability(server, l.Capability()) {
			continue
		}
		asking.Go(func() {
			for _, one := range s.Offers.ListApproved(ctx, server, l) {
				if raw, err := tool.StrictForm(one.Kind, one.Raw); err == nil {
					if e := (&aggregateListEntry{server: server.Name, own: one.Name, raw: raw}); s.listsPrimitive(apps, l, e) {
						lists[i] = append(lists[i], e)
					}
				}
			}
		})
	}
	asking.Wait()
	all := slices.Concat(lists...)
	assignPrimitiveNames(l, all, apps)
	return all
}
