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
	return append(l.named[:maxLeftOut:maxLeftOut], fmt.Sprintf("%d more malformed definitions are left out", l.more))
}

// LeftOut explains which of the server's tools are left out of the lists of all servers, and why.
func (s *Server) LeftOut() []string {
	var l leftOutDefinitions
	for _, t := range s.Tools {
		if _, err := t.StrictForm(); err != nil {
			l.addMalformed(tool.KindTool, t.ID.Tool, err)
		}
	}
	return l.text()
}
