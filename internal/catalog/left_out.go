package catalog

import (
	"fmt"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// maxLeftOut is the number of a server's definitions that are listed individually. The others are only counted.
const maxLeftOut = 50

// leftOutDefinitions explains which definitions of a server are left out of the lists of all servers, and why.
type leftOutDefinitions struct {
	named []string
	more  int
}

func (l *leftOutDefinitions) add(what string) {
	if len(l.named) == maxLeftOut {
		l.more++
		return
	}
	l.named = append(l.named, what)
}

// addMalformed adds a definition that strict clients reject.
func (l *leftOutDefinitions) addMalformed(kind tool.DefinitionKind, name string, err error) {
	l.add(fmt.Sprintf("%s '%s' is left out of /mcp/all: its %v", kind.Label(), problem.ClipName(name), err))
}

func (l *leftOutDefinitions) text() []string {
	if l.more == 0 {
		return l.named
	}
	return append(l.named[:maxLeftOut:maxLeftOut], fmt.Sprintf("%d more warnings like these are not shown", l.more))
}

// LeftOut explains which of a server's definitions are left out of the lists of all servers, why, and what to do. It
// also explains which of the user's settings for tools have no effect.
func (c *Catalog) LeftOut(s *Server) []string {
	var malformed, settings leftOutDefinitions
	named := map[string]bool{}
	for _, t := range s.Tools {
		named[t.ID.Tool] = true
		if t.shadowedBy != "" {
			settings.add(fmt.Sprintf("its tool '%s' is available only at /mcp/servers/%s, because '%s' is the alias of '%s' in the configuration; choose another alias", problem.ClipName(t.ID.Tool), s.Name, problem.ClipName(t.ID.Tool), problem.ClipName(t.shadowedBy)))
		}
		if _, err := t.StrictForm(); err != nil {
			malformed.addMalformed(tool.KindTool, t.ID.Tool, err)
		}
	}
	for _, one := range s.settings {
		if s.ListedThisRun && !named[one.Tool] {
			settings.add(fmt.Sprintf("tools in the configuration has settings for '%s', which the server does not list", problem.ClipName(one.Tool)))
		}
	}
	all := slices.Concat(malformed.text(), c.CurrentPrimitives(s.Name).leftOut.text())
	if len(all) > 0 {
		all = append(all, "clients reject a whole list for one such definition; update the server, or report the definitions to its author; until then they are at /mcp/servers/"+s.Name)
	}
	return append(all, settings.text()...)
}
