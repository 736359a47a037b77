package ops

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// FoundServers contains the servers found by one scan and the plan for importing them.
type FoundServers struct {
	Findings

	account *Importer
	target  ImportTarget
	all     []importCandidate
}

// FindServers finds the servers of one client, or of all clients if client is "". The error is a *problem.Problem, with
// code NOT_FOUND for an unknown client.
func (a *Importer) FindServers(ctx context.Context, target ImportTarget, client string) (*FoundServers, error) {
	all := clients.ImportSources()
	if client != "" {
		one, err := clients.FindImportSource(client)
		if err != nil {
			return nil, err
		}
		all = []clients.Client{one}
	}
	s := clientFileScan{account: a, seen: map[string]bool{}}
	for _, c := range all {
		s.scanClient(c)
	}
	return s.toFoundServers(ctx, target)
}

// FindServersInText finds the servers in a text from the user: a client's file, a part of one, a command or a URL. The
// servers cannot be removed from the text. The error is a *problem.Problem.
func (a *Importer) FindServersInText(ctx context.Context, target ImportTarget, name string, text []byte) (*FoundServers, error) {
	found, _, err := clients.ParsePasted(text)
	if err != nil {
		return nil, err
	}
	s := clientFileScan{account: a}
	for _, n := range found.Notes {
		s.broken = append(s.broken, BrokenFile{Path: name, Message: noteText(n)})
	}
	for _, server := range found.Servers {
		s.addCandidate(importCandidate{Found: Found{ClientName: found.Client, Path: name, Scope: clients.User}}, server)
	}
	return s.toFoundServers(ctx, target)
}

// toFoundServers plans the import of the candidates.
func (s *clientFileScan) toFoundServers(ctx context.Context, target ImportTarget) (*FoundServers, error) {
	p, err := newImportPlanner(ctx, target)
	if err != nil {
		return nil, err
	}
	h := &FoundServers{Findings{[]Found{}, append([]BrokenFile{}, s.broken...)}, s.account, target, s.all}
	for i := range h.all {
		if err := p.planImport(ctx, h.all, i); err != nil {
			return nil, err
		}
		h.Found = append(h.Found, h.all[i].Found)
	}
	return h, nil
}

// importPlanner finds duplicates among the candidates, and assigns names to the candidates and their secrets. It caches
// data about this MCPProxy.
type importPlanner struct {
	target   ImportTarget
	existing []clients.ImportedServer
	names    clients.UsedServerNames
	launches map[string]int     // index of the candidate by launch
	values   map[string]*string // values of stored secrets by name; nil if missing
	claims   map[string]*string // values of candidates' secrets by assigned name
	unknown  map[string]bool    // names of secrets that could not be read
}

func newImportPlanner(ctx context.Context, target ImportTarget) (*importPlanner, error) {
	text, err := target.ConfigText()
	if err != nil {
		return nil, err
	}
	tree, err := clients.ParseText(text, textedit.JSON)
	if err != nil {
		return nil, err
	}
	file, err := tree.Get("mcpServers").ReadServers("", "")
	if err != nil {
		return nil, err
	}
	names, err := target.ServerNames(ctx)
	if err != nil {
		return nil, err
	}
	p := &importPlanner{target, file.Servers, clients.UsedServerNames{}, map[string]int{}, map[string]*string{}, map[string]*string{}, map[string]bool{}}
	for _, name := range names {
		p.names.AddName(name)
	}
	for _, s := range file.Servers {
		p.names.AddName(s.Name)
	}
	return p, nil
}

// planImport determines whether a candidate already exists or is a duplicate. Otherwise, it assigns names to the
// candidate and its secrets.
func (p *importPlanner) planImport(ctx context.Context, all []importCandidate, i int) error {
	c := &all[i]
	launch, err := wirejson.MarshalWithoutHTMLEscape(c.entry.Launch)
	if err != nil {
		return err
	}
	c.secrets = FindCredentials(c.Name, c.entry.Launch)
	c.Launch = ReplaceCredentials(c.entry.Launch, c.secrets, func(Credential) string { return "[masked]" })
	if isMCPProxyItself(*c, p.target.CheckNotSelf) {
		c.IsProxy, c.secrets = true, nil
		return nil
	}
	if first, again := p.launches[string(launch)]; again {
		c.markDuplicateOf(all, first)
		return nil
	}
	p.launches[string(launch)] = i
	for _, s := range p.existing {
		if like, exact := p.isSameLaunch(ctx, s.Entry.Launch, c.entry.Launch); like {
			c.AlreadyAdded, c.exactlyHere, c.Name, c.secrets = true, exact, s.Name, nil
			return nil
		}
	}
	c.Name = p.names.UniqueName(c.Called)
	p.names.AddName(c.Name)
	c.Notes = slices.DeleteFunc(c.Notes, func(n string) bool { return strings.Contains(n, "the server is called ") })
	if c.Name != c.Called {
		c.Notes = append(c.Notes, "the server is called "+c.Name+" here")
	}
	if hasSecretInCommand(c.secrets) {
		c.Notes = append(c.Notes, "some arguments are masked here, so the server waits for review, which shows them")
	}
	for k := range c.secrets {
		p.assignSecretName(ctx, c.Name, &c.secrets[k])
		c.Secrets = append(c.Secrets, InClear{c.secrets[k].Place, c.secrets[k].Name})
	}
	return nil
}

// markDuplicateOf marks a candidate as a duplicate of the candidate with index first.
func (c *importCandidate) markDuplicateOf(all []importCandidate, first int) {
	other := all[first]
	c.duplicateOf, c.Name, c.AlreadyAdded, c.exactlyHere, c.Secrets, c.secrets = first, other.Name, other.AlreadyAdded, other.exactlyHere, other.Secrets, other.secrets
	where := other.ClientName
	if where == "" {
		where = other.Path
	}
	c.Notes = append(c.Notes, "it is the same server as "+other.Called+" of "+where)
}

// maxSecretNames limits the number of names tried for a secret. The last name is used without a check.
const maxSecretNames = 50

// assignSecretName gives a secret a name under which no other value is stored.
func (p *importPlanner) assignSecretName(ctx context.Context, server string, c *Credential) {
	longer := ToSecretName(server + "_" + c.Name)
	for n := range maxSecretNames {
		switch n {
		case 0: // the name that it has
		case 1:
			c.Name = longer
		default:
			c.Name = fmt.Sprintf("%s_%d", longer, n)
		}
		value := p.storedSecretValue(ctx, c.Name)
		if claim := p.claims[c.Name]; claim != nil {
			value = claim
		}
		if !p.unknown[c.Name] && (value == nil || *value == c.Value) {
			break
		}
	}
	p.claims[c.Name] = &c.Value
}

// storedSecretValue returns the value of a stored secret, or nil if it is missing or unreadable.
func (p *importPlanner) storedSecretValue(ctx context.Context, name string) *string {
	if value, asked := p.values[name]; asked {
		return value
	}
	p.values[name] = nil
	value, err := p.target.ReadSecret(ctx, name)
	switch {
	case err == nil:
		p.values[name] = &value
	case !errors.Is(err, secret.ErrMissing):
		p.unknown[name] = true
	}
	return p.values[name]
}

// isSameLaunch reports whether two launches are equal after resolving references to secrets. exact is false if a secret
// could not be read.
func (p *importPlanner) isSameLaunch(ctx context.Context, ours, theirs config.Launch) (like, exact bool) {
	a := slices.Concat([]string{ours.Command, ours.URL, ours.WorkingDir}, ours.Args)
	b := slices.Concat([]string{theirs.Command, theirs.URL, theirs.WorkingDir}, theirs.Args)
	if len(ours.Args) != len(theirs.Args) || len(ours.Env) != len(theirs.Env) || len(ours.Headers) != len(theirs.Headers) {
		return false, false
	}
	for _, values := range [][2]map[string]string{{ours.Env, theirs.Env}, {ours.Headers, theirs.Headers}} {
		for name, value := range values[0] {
			other, there := values[1][name]
			if !there {
				return false, false
			}
			a, b = append(a, value), append(b, other)
		}
	}
	exact = true
	for i := range a {
		equal, sure := p.isSameTextWithSecrets(ctx, a[i], b[i])
		if !equal {
			return false, false
		}
		exact = exact && sure
	}
	return true, exact
}

// isSameTextWithSecrets compares a text of this MCPProxy, which may refer to secrets, with another text. If a secret
// cannot be read, it compares the rest of the texts, and sure is false.
func (p *importPlanner) isSameTextWithSecrets(ctx context.Context, ours, theirs string) (alike, sure bool) {
	before, rest, refers := strings.Cut(ours, "${keyring:")
	name, after, closed := strings.Cut(rest, "}")
	if ours == theirs || !refers || !closed {
		return ours == theirs, ours == theirs
	}
	theirs, begins := strings.CutPrefix(theirs, before)
	value := p.storedSecretValue(ctx, name)
	if begins && value == nil {
		return strings.HasSuffix(theirs, after) && theirs != after, false
	}
	if begins {
		theirs, begins = strings.CutPrefix(theirs, *value)
	}
	if !begins {
		return false, false
	}
	return p.isSameTextWithSecrets(ctx, after, theirs)
}

// selectByIDs returns the indexes of the candidates with the given IDs. The error is a *problem.Problem.
func (h *FoundServers) selectByIDs(ids []string) ([]int, error) {
	if len(ids) == 0 || len(ids) > maxFound {
		return nil, problem.Newf(problem.InvalidParameter, "There must be 1 to %d ids.", maxFound).WithHint("Use the ids of the list of found servers.").With("parameter", "ids")
	}
	var out []int
	for _, id := range ids {
		i := slices.IndexFunc(h.all, func(c importCandidate) bool { return c.ID == id })
		switch {
		case i < 0:
			return nil, problem.New(problem.NotFound, "A chosen server was changed or removed in its client.", "List the servers again, and choose again.")
		case h.all[i].IsProxy:
			return nil, problem.New(problem.InvalidParameter, "MCPProxy itself cannot be imported.", "Leave "+h.all[i].Called+" out.").With("parameter", "ids")
		case !slices.Contains(out, i):
			out = append(out, i)
		}
	}
	return out, nil
}

// maxFound limits the number of servers that one scan reads.
const maxFound = 1000

// importCandidate is a server that can be imported.
type importCandidate struct {
	Found

	entry       clients.ConfigEntry
	file        clients.File
	entryPath   []string     // key path of its entry in the file; nil if it is in a list
	exactlyHere bool         // whether exactly this server exists in MCPProxy
	duplicateOf int          // index of an earlier candidate for the same server; -1 if there is none
	secrets     []Credential // secrets to store, with their names in the keyring
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
