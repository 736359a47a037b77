package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// Limits of tool settings.
const (
	// maxShownName limits server__alias, in characters, because many clients reject or cut longer names.
	maxShownName = 64
	maxToolText  = 4000 // bytes of a description
	// MaxAlwaysTools limits the tools with always, because every answer of retrieve_tools contains them.
	MaxAlwaysTools = 10
	// alwaysBytes is the part of discovery_limit that each of them requires, in bytes, so that none is left out.
	alwaysBytes = 2500
)

// CheckToolAlias returns an error if a tool cannot have that alias. Whether it fits the server is checked later.
func CheckToolAlias(alias string) error {
	switch {
	case alias == "":
		return errors.New("the alias is empty; remove it to keep the server's name")
	case strings.Contains(alias, "__"):
		return errors.New(`the alias contains "__", which separates the server from the tool; use one underscore`)
	case alias[0] == '_' || alias[0] == '-':
		return errors.New("the alias must begin with a letter or a digit")
	}
	for _, r := range alias {
		if r != '_' && r != '-' && (r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return errors.New("the alias may contain only letters, digits, '_' and '-', because clients reject other characters; write it without the name of the server")
		}
	}
	return nil
}

// CheckToolText returns an error if a tool cannot have that description.
func CheckToolText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the text is empty; remove it to keep the server's description")
	case len(text) > maxToolText:
		return fmt.Errorf("the text is longer than %d bytes; shorten it, because agents load it", maxToolText)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) }):
		return errors.New("the text contains a control character or an invisible one; remove it")
	}
	return nil
}

// checkToolName checks a server's own name of a tool.
func checkToolName(name string) error {
	if _, err := tool.ParseID("s:" + name); err != nil {
		return fmt.Errorf("%w; write the server's own name of the tool", err)
	}
	return nil
}

// decodeToolSettings decodes tools in file order.
func (d *decoder) decodeToolSettings(v hujson.Value, path string) (any, any) {
	resolved, raw := []ToolSettings{}, []ToolSettings{}
	named, taken := map[string]bool{}, map[string]string{} // aliases → tools
	for m, name := range d.eachEntry(v, path, "an object (tool name → alias, description, always)", checkToolName) {
		at := joinPath(path, name)
		one, shown := ToolSettings{Tool: name}, ToolSettings{Tool: name}
		g := d.decodeObject(m.Value, at, one.keys(), shown.keys())
		if one.Description != "" && one.AddDescription != "" {
			d.addMistake(g["add_description"].Name.StartOffset, at, "description replaces the server's text, and add_description adds to it", "keep one of them")
		}
		if one.Alias != "" && d.checkAliasUnique(g["alias"].Value.StartOffset, at, &one, taken) {
			taken[one.Alias] = name
		}
		if named[name] = true; len(g) > 0 { // else only keys of other clients
			resolved, raw = append(resolved, one), append(raw, shown)
		}
	}
	for _, t := range resolved {
		if named[t.Alias] {
			d.addMistake(v.StartOffset, joinPath(path, t.Tool), fmt.Sprintf("the alias %s is the name of another tool in tools", quoteClipped(t.Alias)), "choose another alias")
		}
	}
	return resolved, raw
}

// checkAliasUnique reports whether an alias fits the server's name and is used once.
func (d *decoder) checkAliasUnique(offset int, path string, t *ToolSettings, taken map[string]string) bool {
	path = joinPath(path, "alias")
	other, twice := taken[t.Alias]
	switch n := len(d.serverName) + len("__") + len(t.Alias); {
	case n > maxShownName:
		d.addMistake(offset, path, fmt.Sprintf("with the server's name, the alias has %d characters; many clients accept only %d", n, maxShownName), "shorten it")
	case twice:
		d.addMistake(offset, path, fmt.Sprintf("the tools %s and %s have the same alias %s", quoteClipped(other), quoteClipped(t.Tool), quoteClipped(t.Alias)), "choose another one")
	default:
		return true
	}
	return false
}

// checkAlwaysTools checks the number of tools with always, which takes a part of discovery_limit.
func (d *decoder) checkAlwaysTools(g objectMembers, c *Config) {
	n := 0
	for _, s := range c.Servers {
		for _, t := range s.ToolSettings {
			if t.Always {
				n++
			}
		}
	}
	switch at := g["mcpServers"].Name.StartOffset; {
	case n > MaxAlwaysTools:
		d.addMistake(at, "mcpServers", fmt.Sprintf("%d tools have always; at most %d can, because each answer of retrieve_tools contains them", n, MaxAlwaysTools), "remove always from some of them")
	case n*alwaysBytes > c.DiscoveryLimit:
		d.addMistake(at, "mcpServers", fmt.Sprintf("%d tools have always, which needs a discovery_limit of at least %d", n, n*alwaysBytes), "raise discovery_limit, or remove always from some of them")
	}
}

// ToolSettingChange is a change of one member of a tool's settings. A nil value removes it.
type ToolSettingChange struct {
	Key   string
	Value json.RawMessage
}

// SetToolSettings changes the settings of a tool in the file and applies the file. Other members, entries and comments
// are preserved. Objects that become empty are removed.
func (l *LiveConfig) SetToolSettings(permit ConfirmFunc, server, name string, changes []ToolSettingChange) error {
	var edits []textEdit
	for _, one := range changes {
		edits = append(edits, editOfServer(server, func(d document, entry textedit.Container) ([]textedit.Splice, error) {
			return d.toolSettingSplices(server, entry, []string{"tools", name, one.Key}, one.Value)
		}))
	}
	return l.editServers(permit, []string{server}, edits...)
}

// toolSettingSplices returns the splices that set the value at a path of names in a server, or remove it if it is nil.
func (d document) toolSettingSplices(server string, object textedit.Container, path []string, value json.RawMessage) ([]textedit.Splice, error) {
	if at := object.IndexOf(path[0]); at >= 0 && object.Items[at].Value.Value.Kind() == '[' {
		return nil, problem.Newf(problem.Conflict, "Server '%s' has a list as tools, which is another name for enabled_tools.", server).
			WithHint("Rename that key to enabled_tools in the file, and try again.")
	}
	if value != nil {
		return d.SplicesToSetAtPath(object, path, value, false)
	}
	remove, at := textedit.Container{}, -1
	for _, name := range path {
		i := object.IndexOf(name)
		if i < 0 {
			return nil, nil
		}
		if at < 0 || len(object.Items) > 1 {
			remove, at = object, i
		}
		object = textedit.ContainerOf(object.Items[i].Value)
	}
	return d.SplicesToRemove(remove, at), nil
}
