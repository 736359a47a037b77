package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// SessionNeed is a reason why a client needs its own session with a server.
type SessionNeed string

// The needs. The first three are questions that the server asks; they have the name of the capability
// (mcp.QuestionCapability) and concern the clients that have declared it. NeedState concerns all clients.
const (
	NeedSampling     SessionNeed = "sampling"
	NeedElicitation  SessionNeed = "elicitation"
	NeedRoots        SessionNeed = "roots"
	NeedCapabilities SessionNeed = "capabilities" // the server lists other tools to clients that it can ask
	NeedState        SessionNeed = "state"        // the server keeps state for each session, as a browser does
)

// sameList is the prefix of the record that a server lists the same to clients that it can ask and to those that it
// cannot ask. The digest of the list follows. It is stored like a need, but is none.
const sameList = "same:"

// maxRecords limits the stored records of a server whose list changes with each start.
const maxRecords = 10

// questionNeeds are the needs that questions cause. declared is the capability that MCPProxy declares on a shared
// connection as long as the need is not known. As soon as the server has asked, the clients that cannot be asked share a
// connection without the capability, because the server may behave differently for them.
var questionNeeds = []struct {
	need     SessionNeed
	declared json.RawMessage
}{
	{NeedSampling, json.RawMessage(`{"context":{},"tools":{}}`)},
	{NeedElicitation, json.RawMessage(`{"form":{},"url":{}}`)},
	{NeedRoots, json.RawMessage(`{}`)},
}

// KnownNeed is a need that a server has.
type KnownNeed struct {
	Need  SessionNeed `json:"need" enum:"sampling,elicitation,roots,capabilities,state"`
	Since time.Time   `json:"since,omitzero"` // when the server asked; zero if its command shows the need
}

// statefulPackages are packages of servers that are known to keep state for each session, most of them a browser.
var statefulPackages = []string{
	"@playwright/mcp", "@executeautomation/playwright-mcp-server", "mcp-server-playwright", "@modelcontextprotocol/server-puppeteer", "mcp-server-puppeteer",
	"puppeteer-mcp-server", "chrome-devtools-mcp", "@browserbasehq/mcp-server-browserbase", "@angiejones/mcp-selenium", "browser-use",
	"@modelcontextprotocol/server-sequential-thinking", "mcp-server-sequential-thinking",
}

// rootsPackages are packages of servers that work in the directories of their arguments, or else in the roots of the client.
var rootsPackages = []string{"@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"}

// isPackage reports whether a word of a command names one of the packages: with a version, or as a path.
func isPackage(word string, packages []string) bool {
	name := word
	if at := strings.LastIndexByte(word, '@'); at > 0 {
		name = word[:at]
	}
	return slices.ContainsFunc(packages, func(p string) bool {
		return name == p || strings.HasSuffix(name, "/bin/"+p) || strings.Contains(word, "/node_modules/"+p+"/")
	})
}

// knownNeeds returns the known needs of the launch, and those that its command shows.
func (s *Spec) knownNeeds() []KnownNeed {
	if !s.Auto || s.Transport != Stdio {
		return s.Needs
	}
	needs, words := slices.Clone(s.Needs), append([]string{s.Command}, s.Args...)
	if slices.ContainsFunc(words, func(word string) bool { return isPackage(word, statefulPackages) }) {
		needs = append(needs, KnownNeed{Need: NeedState})
	}
	if isPackage(words[len(words)-1], rootsPackages) { // without directories
		needs = append(needs, KnownNeed{Need: NeedRoots})
	}
	return needs
}

// sessionNeeds are the known needs of a server.
type sessionNeeds struct {
	mu    sync.Mutex // held while the needs change
	known atomic.Pointer[[]KnownNeed]
}

// list returns the known needs.
func (n *sessionNeeds) list() []KnownNeed {
	if all := n.known.Load(); all != nil {
		return *all
	}
	return nil
}

// has reports whether a need is known.
func (n *sessionNeeds) has(need SessionNeed) bool {
	return slices.ContainsFunc(n.list(), func(k KnownNeed) bool { return k.Need == need })
}

// add adds a need and reports whether it is new.
func (n *sessionNeeds) add(k KnownNeed) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.has(k.Need) {
		return false
	}
	all := append(slices.Clone(n.list()), k)
	n.known.Store(&all)
	return true
}

// needs returns the known needs without the records of lists.
func (n *sessionNeeds) needs() []KnownNeed {
	return slices.DeleteFunc(slices.Clone(n.list()), func(k KnownNeed) bool { return strings.HasPrefix(string(k.Need), sameList) })
}

// learnNeed records a need of the server. stores is false for a need that may not exist after a restart.
func (s *Server) learnNeed(need SessionNeed, stores bool) {
	k := KnownNeed{need, time.Now()}
	if need == "" || s.needs.has(need) || !s.needs.add(k) {
		return
	}
	if stores && s.NeedLearned != nil {
		s.NeedLearned(s.Spec.Name, k)
	}
	s.Clients.OnNeedLearned()
}

// NeedsOwnSession reports whether a client with these capabilities needs its own session. withTasks reports whether it
// may use tasks if the server on c supports them: in a shared session, the list of tasks would contain those of other
// clients.
func (s *Server) NeedsOwnSession(c *Connection, capabilities json.RawMessage, withTasks bool) bool {
	if s.needs.has(NeedState) {
		return true
	}
	for _, q := range questionNeeds {
		if (s.needs.has(q.need) || s.needs.has(NeedCapabilities)) && wirejson.Kind(wirejson.Find(capabilities, string(q.need))) == '{' {
			return true
		}
	}
	return withTasks && wirejson.Find(c.handshakeResult.Capabilities, "tasks") != nil
}

// declaredCapabilities returns the capabilities that MCPProxy declares to the server on its own connection. asks adds those
// for questions.
func (b *serverBase) declaredCapabilities(asks bool) json.RawMessage {
	all := json.RawMessage("{}")
	if b.apps.Load() {
		all = json.RawMessage(mcp.AppsCapabilities)
	}
	for _, q := range questionNeeds {
		if asks && !b.needs.has(q.need) {
			all = wirejson.SetMember(all, string(q.need), q.declared)
		}
	}
	return all
}

// openSharableConnection opens a connection that clients can share. With Spec.Auto, MCPProxy declares the capabilities for
// questions, so that the server asks. But some servers list other tools to a client that they can ask. So MCPProxy first
// connects without these capabilities, ends that connection, and compares: if the server lists the same with them, all
// clients share. Otherwise MCPProxy declares none, and clients that can be asked have their own sessions. The result is
// stored, so that a server starts twice only once. Two processes never run at the same time.
func (s *Server) openSharableConnection(ctx context.Context) (*Connection, []*tool.Definition, error) {
	if !s.Spec.Auto || s.needs.has(NeedCapabilities) || s.needs.has(NeedState) {
		return s.openWithinLimit(ctx, false)
	}
	records := len(s.needs.list()) - len(s.needs.needs())
	compared := records > 0
	c, tools, err := s.openWithinLimit(ctx, compared)
	if err != nil || c.IsModern() || compared && s.needs.has(listRecord(c, tools)) {
		return c, tools, err
	}
	c.link.Stop(s.stopNow)
	if compared { // it now lists other tools than when it was compared
		if c, tools, err = s.openWithinLimit(ctx, false); err != nil {
			return nil, nil, err
		}
		c.link.Stop(s.stopNow)
	}
	without := listRecord(c, tools)
	c, tools, err = s.openWithinLimit(ctx, true)
	switch {
	case err == nil && listRecord(c, tools) == without:
		s.learnNeed(without, records < maxRecords)
		return c, tools, nil
	case err == nil:
		c.link.Stop(s.stopNow)
	case ctx.Err() != nil:
		return nil, nil, err
	}
	s.learnNeed(NeedCapabilities, err == nil)
	return s.openWithinLimit(ctx, false)
}

// listRecord returns the record of the tools, capabilities and instructions of a server on a connection.
func listRecord(c *Connection, tools []*tool.Definition) SessionNeed {
	g, hash := c.handshakeResult, sha256.New()
	add := func(part []byte) { hash.Write(append(binary.AppendUvarint(nil, uint64(len(part))), part...)) }
	add([]byte(g.Version))
	add([]byte(g.Instructions))
	add(g.Capabilities)
	for _, d := range slices.SortedFunc(slices.Values(tools), func(a, b *tool.Definition) int { return strings.Compare(a.ID.Tool, b.ID.Tool) }) {
		add(d.Raw)
	}
	return SessionNeed(sameList + hex.EncodeToString(hash.Sum(nil)[:16]))
}
