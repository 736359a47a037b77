package catalog

import (
	"fmt"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// maxLeftOut is the number of a server's definitions that are listed individually. The others are only counted.
const maxLeftOut = 10

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
	l.add(fmt.Sprintf("the definition of %s '%s' is malformed: its %v; it is left out of /mcp/all, where one such definition makes clients reject the whole list", kind.Label(), problem.ClipName(name), err))
}

func (l *leftOutDefinitions) text() []string {
	if l.more == 0 {
		return l.named
	}
	return append(l.named[:maxLeftOut:maxLeftOut], fmt.Sprintf("%d more warnings like these are not shown", l.more))
}

// LeftOut explains which of the server's tools are left out of the lists of all servers, and why, and which of the
// user's settings for tools have no effect.
func (s *Server) LeftOut() []string {
	var l leftOutDefinitions
	named := map[string]bool{}
	for _, t := range s.Tools {
		named[t.ID.Tool] = true
		if t.shadowedBy != "" {
			l.add(fmt.Sprintf("its tool '%s' is available only at /mcp/servers/%s, because '%s' is the alias of '%s' in the configuration; choose another alias", problem.ClipName(t.ID.Tool), s.Name, problem.ClipName(t.ID.Tool), problem.ClipName(t.shadowedBy)))
		}
		if _, err := t.StrictForm(); err != nil {
			l.addMalformed(tool.KindTool, t.ID.Tool, err)
		}
	}
	for _, one := range s.settings {
		if s.ListedThisRun && !named[one.Tool] {
			l.add(fmt.Sprintf("tools in the configuration has settings for '%s', which the server does not list", problem.ClipName(one.Tool)))
		}
	}
	return l.text()
}
