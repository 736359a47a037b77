package mcpserver

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// instructions is what a client may tell its model about this server, before what
// there is behind it: nobody searches for what he does not know to be there.
const instructions = "MCPProxy gives you the tools of many MCP servers. Find one with retrieve_tools by saying what you want to do, " +
	"then call it by its name (server:tool) with the variant that its call_with names: call_tool_read, call_tool_write or call_tool_destructive. "

// maxNamed bounds, in bytes, what the instructions say of the servers.
const maxNamed = 600

// shown is what a client is shown that may change while it is there: the built-in
// tools, and the servers whose tools they find.
type shown struct {
	listing listing
	servers []ops.UsableServer
}

// instructions returns the instructions as JSON.
func (w shown) instructions(calls map[string]int64) []byte {
	return wirejson.AppendString(nil, instructions+w.sentence(calls))
}

// sentence names the servers, with how many of their tools can be called, the most
// called first, then those with most tools, and counts those whose tools are not known yet. The names are the user's; nothing is a
// server's word.
func (w shown) sentence(calls map[string]int64) string {
	if len(w.servers) == 0 {
		const none = "No server can be used yet. The user adds one with `mcpproxy upstream add`"
		if w.listing.management == config.ManagePropose {
			return none + "; what you propose with upstream_servers waits for the user."
		}
		return none + "."
	}
	const rest, unlisted = " and 1000000000 more.", " 1000000000 servers have not listed their tools yet." // at most
	known := slices.DeleteFunc(slices.Clone(w.servers), func(s ops.UsableServer) bool { return !s.Listed })
	yet := notListed(len(w.servers) - len(known))
	if len(known) == 0 {
		return strings.TrimSpace(yet)
	}
	slices.SortStableFunc(known, func(a, b ops.UsableServer) int {
		return cmp.Or(cmp.Compare(calls[b.Name], calls[a.Name]), cmp.Compare(b.Tools, a.Tools))
	})
	var out strings.Builder
	out.WriteString("The servers, with how many tools each has:")
	for i, s := range known {
		one := " " + s.Name + " (" + strconv.Itoa(s.Tools) + ")"
		if out.Len()+len(",")+len(one)+len(rest)+len(unlisted) > maxNamed {
			fmt.Fprintf(&out, " and %d more", len(known)-i)
			break
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(one)
	}
	out.WriteByte('.')
	return out.String() + yet
}

// notListed says how many servers there are whose tools are not known yet; nothing if
// there are none.
func notListed(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " 1 server has not listed its tools yet."
	}
	return fmt.Sprintf(" %d servers have not listed their tools yet.", n)
}

// digest stands for what is shown: two that are equal show the same.
func (w shown) digest() [sha256.Size]byte { return sha256.Sum256(fmt.Append(nil, w)) }

// known is what a client knows of what it is shown.
type known struct {
	mu   sync.Mutex // guards last
	last [sha256.Size]byte
}

// gets notes what the client gets to know, and reports whether that is news.
func (k *known) gets(w shown) (news bool) {
	now := w.digest()
	k.mu.Lock()
	defer k.mu.Unlock()
	news, k.last = k.last != now, now
	return news
}
