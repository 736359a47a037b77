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

// instructions is the first part of the instructions for the model: a model does not search for tools that
// it does not know of.
const instructions = "MCPProxy gives you the tools of many MCP servers. Find one with retrieve_tools by saying what you want to do, " +
	"then call it by its name (server:tool) with the variant that its call_with names: call_tool_read, call_tool_write or call_tool_destructive. "

// maxNamed limits the sentence about the servers, in bytes.
const maxNamed = 600

// clientView is the changeable part of the client's view: the built-in tools, and the servers whose tools
// they find.
type clientView struct {
	listing toolListKey
	servers []ops.UsableServer
}

// instructionsJSON returns the instructions as JSON.
func (w clientView) instructionsJSON(calls map[string]int64) []byte {
	return wirejson.AppendString(nil, instructions+w.serversSentence(calls))
}

// serversSentence names the servers with their numbers of callable tools, most called first, then by number of
// tools, and counts servers whose tools are unknown. The names are from the configuration; no text is from
// a server.
func (w clientView) serversSentence(calls map[string]int64) string {
	if len(w.servers) == 0 {
		const none = "No server can be used yet. The user adds one with `mcpproxy upstream add`"
		if w.listing.management == config.ManagePropose {
			return none + "; servers that you propose with upstream_servers wait for the user."
		}
		return none + "."
	}
	const rest, unlisted = " and 1000000000 more.", " 1000000000 servers have not listed their tools yet." // longest possible
	known := slices.DeleteFunc(slices.Clone(w.servers), func(s ops.UsableServer) bool { return !s.Listed })
	yet := notListedSentence(len(w.servers) - len(known))
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

// notListedSentence counts the servers whose tools are unknown; "" for none.
func notListedSentence(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " 1 server has not listed its tools yet."
	}
	return fmt.Sprintf(" %d servers have not listed their tools yet.", n)
}

// viewHash returns a hash for comparing views.
func (w clientView) viewHash() [sha256.Size]byte { return sha256.Sum256(fmt.Append(nil, w)) }

// lastView holds the hash of the last view that a client has received.
type lastView struct {
	mu   sync.Mutex // guards last
	last [sha256.Size]byte
}

// replaceView records the view that the client gets, and reports whether it is new.
func (k *lastView) replaceView(w clientView) (news bool) {
	now := w.viewHash()
	k.mu.Lock()
	defer k.mu.Unlock()
	news, k.last = k.last != now, now
	return news
}
