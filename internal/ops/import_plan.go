package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// ImportSet is what was found, and how it would be taken over. It is of the moment at
// which it was made.
type ImportSet struct {
	Findings

	account *ImportAccount
	here    Here
	all     []candidate
}

// Look finds the servers of one client, or with "" those of all. The error is a
// *problem.Problem NOT_FOUND for a client that is not known.
func (a *ImportAccount) Look(ctx context.Context, here Here, client string) (*ImportSet, error) {
	all := clients.ImportSources()
	if client != "" {
		one, err := clients.FindImportSource(client)
		if err != nil {
			return nil, err
		}
		all = []clients.Client{one}
	}
	s := fileScan{account: a, seen: map[string]bool{}}
	for _, c := range all {
		s.client(c)
	}
	return s.haul(ctx, here)
}

// Read finds the servers of a text that a person has given: a client's file, a part
// of one, a command or a URL. Nothing can be taken out of it. The error is a
// *problem.Problem.
func (a *ImportAccount) Read(ctx context.Context, here Here, name string, text []byte) (*ImportSet, error) {
	found, _, err := clients.ParsePasted(text)
	if err != nil {
		return nil, err
	}
	s := fileScan{account: a}
	for _, n := range found.Notes {
		s.broken = append(s.broken, BrokenFile{Path: name, Message: noted(n)})
	}
	for _, server := range found.Servers {
		s.add(candidate{Found: Found{ClientName: found.Client, Path: name, Scope: clients.User}}, server)
	}
	return s.haul(ctx, here)
}

// haul gives the candidates their names.
func (s *fileScan) haul(ctx context.Context, here Here) (*ImportSet, error) {
	p, err := newPlan(ctx, here)
	if err != nil {
		return nil, err
	}
	h := &ImportSet{Findings{[]Found{}, append([]BrokenFile{}, s.broken...)}, s.account, here, s.all}
	for i := range h.all {
		if err := p.place(ctx, h.all, i); err != nil {
			return nil, err
		}
		h.Found = append(h.Found, h.all[i].Found)
	}
	return h, nil
}

// plan is what is known here while candidates get their names.
type plan struct {
	here     Here
	existing []clients.ServerEntry
	names    clients.ServerNames
	launches map[string]int     // candidates by their launch
	values   map[string]*string // of secrets; nil for none
	claims   map[string]*string // secrets that candidates are to have
	unknown  map[string]bool    // secrets that cannot be asked for
}

func newPlan(ctx context.Context, here Here) (*plan, error) {
	text, err := here.Text()
	if err != nil {
		return nil, err
	}
	tree, err := clients.ParseTree(text, textedit.JSON)
	if err != nil {
		return nil, err
	}
	file, err := tree.Get("mcpServers").Servers("", "")
	if err != nil {
		return nil, err
	}
	names, err := here.Names(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{here, file.Servers, clients.ServerNames{}, map[string]int{}, map[string]*string{}, map[string]*string{}, map[string]bool{}}
	for _, name := range names {
		p.names.Add(name)
	}
	for _, s := range file.Servers {
		p.names.Add(s.Name)
	}
	return p, nil
}

// place says of a candidate whether its server is here or among those before it, and
// else what it and its secrets are to be called.
func (p *plan) place(ctx context.Context, all []candidate, i int) error {
	c := &all[i]
	launch, err := wirejson.Marshal(c.entry.Launch)
	if err != nil {
		return err
	}
	c.secret = credentials(c.Name, c.entry.Launch)
	c.Launch = with(c.entry.Launch, c.secret, mask)
	if isOurs(*c, p.here.Itself) {
		c.Ours, c.secret = true, nil
		return nil
	}
	if first, again := p.launches[string(launch)]; again {
		c.twinOf(all, first)
		return nil
	}
	p.launches[string(launch)] = i
	for _, s := range p.existing {
		if like, exact := p.same(ctx, s.Entry.Launch, c.entry.Launch); like {
			c.Have, c.here, c.Name, c.secret = true, exact, s.Name, nil
			return nil
		}
	}
	c.Name = p.names.Unique(c.Called)
	p.names.Add(c.Name)
	c.Notes = slices.DeleteFunc(c.Notes, func(n string) bool { return strings.Contains(n, "the server is called ") })
	if c.Name != c.Called {
		c.Notes = append(c.Notes, "the server is called "+c.Name+" here")
	}
	if hides(c.secret) {
		c.Notes = append(c.Notes, "what is masked among its arguments is not shown here: it waits for review, which shows it")
	}
	for k := range c.secret {
		p.keep(ctx, c.Name, &c.secret[k])
		c.Secrets = append(c.Secrets, InClear{c.secret[k].Place, c.secret[k].name})
	}
	return nil
}

// twinOf makes a candidate one more of a server that another one is.
func (c *candidate) twinOf(all []candidate, first int) {
	other := all[first]
	c.twin, c.Name, c.Have, c.here, c.Secrets, c.secret = first, other.Name, other.Have, other.here, other.Secrets, other.secret
	where := other.ClientName
	if where == "" {
		where = other.Path
	}
	c.Notes = append(c.Notes, "it is the same server as "+other.Called+" of "+where)
}

// maxNames is how many names are tried for a secret; the last is taken as it is.
const maxNames = 50

// keep gives a secret a name that no other value has.
func (p *plan) keep(ctx context.Context, server string, c *inClear) {
	longer := CredentialName(server + "_" + c.Wish)
	for n := range maxNames {
		switch n {
		case 0:
			c.name = c.Wish
		case 1:
			c.name = longer
		default:
			c.name = fmt.Sprintf("%s_%d", longer, n)
		}
		value := p.value(ctx, c.name)
		if claim := p.claims[c.name]; claim != nil {
			value = claim
		}
		if !p.unknown[c.name] && (value == nil || *value == c.Value) {
			break
		}
	}
	p.claims[c.name] = &c.Value
}

// value returns a secret, nil when there is none.
func (p *plan) value(ctx context.Context, name string) *string {
	if value, asked := p.values[name]; asked {
		return value
	}
	p.values[name] = nil
	value, err := p.here.Secret(ctx, name)
	switch {
	case err == nil:
		p.values[name] = &value
	case !errors.Is(err, secret.ErrMissing):
		p.unknown[name] = true
	}
	return p.values[name]
}

// same reports whether a server that is here is like another: launched alike, with
// what our references stand for; exact says that this is certain.
func (p *plan) same(ctx context.Context, ours, theirs config.Launch) (like, exact bool) {
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
		equal, sure := p.alike(ctx, a[i], b[i])
		if !equal {
			return false, false
		}
		exact = exact && sure
	}
	return true, exact
}

// alike compares a text of ours, which may refer to secrets, with another. Where one
// is not known they are alike when all around it is, but that is not sure.
func (p *plan) alike(ctx context.Context, ours, theirs string) (alike, sure bool) {
	before, rest, refers := strings.Cut(ours, "${keyring:")
	name, after, closed := strings.Cut(rest, "}")
	if ours == theirs || !refers || !closed {
		return ours == theirs, ours == theirs
	}
	theirs, begins := strings.CutPrefix(theirs, before)
	value := p.value(ctx, name)
	if begins && value == nil {
		return strings.HasSuffix(theirs, after) && theirs != after, false
	}
	if begins {
		theirs, begins = strings.CutPrefix(theirs, *value)
	}
	if !begins {
		return false, false
	}
	return p.alike(ctx, after, theirs)
}

// chosen are the candidates with these ids. The error is a *problem.Problem.
func (h *ImportSet) chosen(ids []string) ([]int, error) {
	if len(ids) == 0 || len(ids) > maxFound {
		return nil, problem.Newf(problem.InvalidParameter, "There must be 1 to %d ids.", maxFound).WithHint("Take them from the list of what was found.").With("parameter", "ids")
	}
	var out []int
	for _, id := range ids {
		i := slices.IndexFunc(h.all, func(c candidate) bool { return c.ID == id })
		switch {
		case i < 0:
			return nil, problem.New(problem.NotFound, "A server that was chosen is not in its client any more as it was.", "List what can be taken over once more, and choose again.")
		case h.all[i].Ours:
			return nil, problem.New(problem.InvalidParameter, "MCPProxy itself cannot be taken over.", "Leave "+h.all[i].Called+" out.").With("parameter", "ids")
		case !slices.Contains(out, i):
			out = append(out, i)
		}
	}
	return out, nil
}
