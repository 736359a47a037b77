package upstream

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// SessionNeed is a reason why a client needs its own session with a server.
type SessionNeed string

// The needs. The first three are questions that the server asks; they have the name of the capability
// (mcp.QuestionCapability) and concern the clients that have declared it. NeedState concerns all clients.
const (
	NeedSampling    SessionNeed = "sampling"
	NeedElicitation SessionNeed = "elicitation"
	NeedRoots       SessionNeed = "roots"
	NeedState       SessionNeed = "state" // the server keeps state for each session, as a browser does
)

// questionNeeds are the needs that questions cause. declared is the capability that MCPProxy declares on a shared
// connection as long as the need is not known. A server behaves differently for clients that it can ask, so the clients
// that cannot be asked share a connection without the capability as soon as it has asked.
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
	Need  SessionNeed `json:"need" enum:"sampling,elicitation,roots,state"`
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

// learnNeed records a need of the server.
func (s *Server) learnNeed(need SessionNeed) {
	k := KnownNeed{need, time.Now()}
	if need == "" || s.needs.has(need) || !s.needs.add(k) {
		return
	}
	if s.NeedLearned != nil {
		s.NeedLearned(s.Spec.Name, k)
	}
	s.Clients.OnNeedLearned()
}

// NeedsOwnSession reports whether a client with these capabilities needs its own session. withTasks reports whether it
// may use tasks if the server on c supports them: in a shared session, the list of tasks would contain those of other
// clients.
func (s *Server) NeedsOwnSession(c *Connection, capabilities json.RawMessage, withTasks bool) bool {
	for _, k := range s.needs.list() {
		switch k.Need {
		case NeedState:
			return true
		default:
			if wirejson.Kind(wirejson.Find(capabilities, string(k.Need))) == '{' {
				return true
			}
		}
	}
	return withTasks && wirejson.Find(c.handshakeResult.Capabilities, "tasks") != nil
}

// declaredCapabilities returns the capabilities that MCPProxy declares to the server on its own connection. apps adds MCP Apps.
func (b *serverBase) declaredCapabilities(apps bool) json.RawMessage {
	all := json.RawMessage("{}")
	if apps {
		all = json.RawMessage(mcp.AppsCapabilities)
	}
	if !b.Spec.Auto {
		return all
	}
	for _, q := range questionNeeds {
		if !b.needs.has(q.need) {
			all = wirejson.SetMember(all, string(q.need), q.declared)
		}
	}
	return all
}
