package ops

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxFound limits the number of servers that one scan reads.
const maxFound = 1000

// importCandidate is a server that can be imported.
type importCandidate struct {
	Found

	entry       clients.ConfigEntry
	file        clients.File
	entryPath   []string       // key path of its entry in the file; nil if it is in a list
	exactlyHere bool           // whether exactly this server exists in MCPProxy
	duplicateOf int            // index of an earlier candidate for the same server; -1 if there is none
	secrets     []launchSecret // secrets to store
}

// clientFileScan collects candidates from clients' files.
type clientFileScan struct {
	account *Importer
	all     []importCandidate
	broken  []BrokenFile
	seen    map[string]bool // paths and keys that were already read, because two clients may share a file
}

func (s *clientFileScan) addBrokenFile(c clients.Client, path string, err error) {
	p := problem.From(err)
	s.broken = append(s.broken, BrokenFile{Client: c.ID, Path: path, Message: strings.TrimPrefix(p.Message, path+": "), Unread: true})
}

// scanClient reads a client's files that belong to the user. It skips files of an administrator or of the whole
// machine, because the user may not change them.
func (s *clientFileScan) scanClient(c clients.Client) {
	paths := []string{}
	for _, f := range c.Files(s.account.env) {
		own := f.Scope == clients.User || f.Scope == clients.Project || f.Scope == clients.Local
		if own && filepath.IsAbs(f.Path) && !slices.Contains(paths, f.Path) {
			paths = append(paths, f.Path)
			s.scanFile(c, f)
		}
	}
}

// scanFile reads one file of a client.
func (s *clientFileScan) scanFile(c clients.Client, f clients.File) {
	read, err := clients.ReadUserFile(f.Path, f.AllowedLinkRoots(s.account.env)...)
	if err != nil || !read.Exists {
		if err != nil {
			s.addBrokenFile(c, f.Path, err)
		}
		return
	}
	doc, err := f.Parse(read.Text)
	if err != nil {
		s.addBrokenFile(c, f.Path, err)
		return
	}
	target := ""
	if read.Target != f.Path {
		target = read.Target
	}
	s.scanDoc(c, doc, f.Scope, target)
}

// scanDoc reads all servers in a client's file.
func (s *clientFileScan) scanDoc(c clients.Client, doc clients.ClientDoc, scope clients.Scope, target string) {
	s.scanSection(c, doc, scope, target, "", doc.ServersPath())
	for _, f := range c.Files(s.account.env) {
		if f.Path != doc.Path || f.Scope != clients.Local {
			continue
		}
		for project := range doc.Value.Get("projects").Members() {
			s.scanSection(c, doc, clients.Local, target, project, []string{"projects", project, "mcpServers"})
		}
	}
}

// scanSection reads the servers under one key of a file.
func (s *clientFileScan) scanSection(c clients.Client, doc clients.ClientDoc, scope clients.Scope, target, project string, keys []string) {
	place := fmt.Sprintf("%q", append([]string{doc.Path}, keys...))
	if s.seen[place] {
		return
	}
	s.seen[place] = true
	at := doc.Value.Get(keys...)
	found, err := at.ReadServers(c.Name, project)
	if err != nil {
		s.addBrokenFile(c, doc.Path, err)
		return
	}
	for _, n := range found.Notes {
		s.broken = append(s.broken, BrokenFile{Client: c.ID, Path: doc.Path, Message: noteText(n)})
	}
	for _, server := range found.Servers {
		one := importCandidate{Found: Found{Client: c.ID, ClientName: c.Name, Path: doc.Path, Target: target, Scope: scope}, file: doc.File}
		if at.IsObject() {
			one.entryPath = append(slices.Clone(keys), server.OriginalName)
		}
		if !s.addCandidate(one, server) {
			s.broken = append(s.broken, BrokenFile{Client: c.ID, Path: doc.Path, Message: fmt.Sprintf("There are more than %d servers: the others are left out.", maxFound)})
			return
		}
	}
}

// addCandidate adds a candidate. It returns false if the limit is reached.
func (s *clientFileScan) addCandidate(c importCandidate, server clients.ImportedServer) bool {
	if len(s.all) == maxFound {
		return false
	}
	c.Name, c.Called, c.entry, c.duplicateOf, c.Notes, c.Secrets = server.Name, server.OriginalName, server.Entry, -1, []string{}, []InClear{}
	for _, n := range server.Notes {
		c.Notes = append(c.Notes, noteText(n))
	}
	c.Notes = append(c.Notes, restrictionNotes(server.Entry)...)
	var err error
	if c.ID, err = s.account.entryID(c); err != nil {
		s.broken = append(s.broken, BrokenFile{Client: c.Client, Path: c.Path, Message: problem.From(err).Message})
		return true
	}
	s.all = append(s.all, c)
	return true
}

func noteText(n clients.Note) string {
	text := n.Message
	if n.Line > 0 {
		text = fmt.Sprintf("line %d: %s", n.Line, text)
	}
	if n.Hint != "" {
		text += "; " + n.Hint
	}
	return text
}

// restrictionNotes describes the settings of an entry that require a review of the server.
func restrictionNotes(e clients.ConfigEntry) (notes []string) {
	if e.Enabled != nil && !*e.Enabled {
		notes = append(notes, "the server is disabled in the client: it stays disabled, and waits for review")
	}
	if len(e.EnabledTools)+len(e.DisabledTools) > 0 {
		notes = append(notes, "the client denies some tools of the server. MCPProxy denies them too, and the server waits for review")
	}
	if e.Protocol == "sse" {
		notes = append(notes, "MCPProxy detects the transport by asking the server")
	}
	return notes
}

// entryID returns an ID for a server's entry in a client's file.
func (a *Importer) entryID(c importCandidate) (string, error) {
	entry, err := wirejson.MarshalWithoutHTMLEscape(c.entry)
	if err != nil {
		return "", err
	}
	keys, err := wirejson.MarshalWithoutHTMLEscape(append([]string{c.Client, c.Path, c.Called}, c.entryPath...))
	if err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, a.key[:])
	sum.Write(append(keys, entry...))
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// isMCPProxyItself reports whether a server is MCPProxy itself.
func isMCPProxyItself(c importCandidate, itself func(config.Launch) error) bool {
	l := c.entry.Launch
	program := strings.TrimSuffix(strings.ToLower(l.Command[strings.LastIndexAny(l.Command, `/\`)+1:]), ".exe")
	bridge := program == clients.DefaultServerName && (len(l.Args) == 0 || slices.Contains(l.Args, "stdio"))
	return clients.IsOwnEntryName(c.Called) || bridge || itself(l) != nil
}
