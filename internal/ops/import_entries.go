package ops

import (
	"regexp"
	"slices"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// Entry is what the entry of a server in the configuration file names and holds.
type Entry struct {
	Server    string
	Variables []string  // environment variables that it refers to
	Clear     []InClear // credentials in clear
}

var referred = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// Entries reads the servers of a configuration file; of one that cannot be read there are
// none.
func Entries(text []byte) (all []Entry) {
	tree, err := clients.ParseTree(text, textedit.JSON)
	if err != nil {
		return nil
	}
	at := tree.Get("mcpServers")
	clear := map[string][]InClear{}
	if file, err := at.Servers("", ""); err == nil {
		for _, s := range file.Servers {
			for _, c := range CredentialsIn(s.Name, s.Entry.Launch) {
				clear[s.OriginalName] = append(clear[s.OriginalName], InClear{c.Place, c.Wish})
			}
		}
	}
	for name, entry := range at.Members() {
		all = append(all, Entry{name, variables(entry), clear[name]})
	}
	return all
}

// variables are the environment variables that the texts of a tree refer to.
func variables(t clients.Tree) (all []string) {
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	for _, m := range referred.FindAllStringSubmatch(t.Text(), -1) {
		add(m[1])
	}
	for _, item := range t.Items() {
		add(variables(item)...)
	}
	for _, member := range t.Members() {
		add(variables(member)...)
	}
	return all
}
