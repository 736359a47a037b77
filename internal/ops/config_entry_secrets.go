package ops

import (
	"regexp"
	"slices"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// EntryReferences lists the variables and secrets in a server's entry in the configuration file.
type EntryReferences struct {
	Server    string
	Variables []string  // environment variables to which it refers
	Clear     []InClear // plain-text secrets
}

var envReference = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// FindEntryVariablesAndSecrets examines each server in a configuration file. It returns the environment variables to
// which the server refers and the places of its plain-text secrets. It returns nil if the file cannot be parsed.
func FindEntryVariablesAndSecrets(text []byte) (all []EntryReferences) {
	tree, err := clients.ParseText(text, textedit.JSON)
	if err != nil {
		return nil
	}
	at := tree.Get("mcpServers")
	clear := map[string][]InClear{}
	if file, err := at.ReadServers("", ""); err == nil {
		for _, s := range file.Servers {
			for _, c := range FindCredentials(s.Name, s.Entry.Launch) {
				clear[s.OriginalName] = append(clear[s.OriginalName], InClear{c.Place, c.Name})
			}
		}
	}
	for name, entry := range at.Members() {
		all = append(all, EntryReferences{name, referencedVariables(entry), clear[name]})
	}
	return all
}

// referencedVariables returns the environment variables to which the strings in a tree refer.
func referencedVariables(t clients.ParsedValue) (all []string) {
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	for _, m := range envReference.FindAllStringSubmatch(t.Text(), -1) {
		add(m[1])
	}
	for _, item := range t.Items() {
		add(referencedVariables(item)...)
	}
	for _, member := range t.Members() {
		add(referencedVariables(member)...)
	}
	return all
}
