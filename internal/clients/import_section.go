package clients

import (
	"cmp"
	"fmt"
	"slices"

	"mcpproxy/internal/config"
)

// readSection reads the servers of one section of the file.
func (r *importReader) readSection(s serverSection) error {
	for _, m := range s.servers.members {
		if err := r.readServer(s, m); err != nil {
			return err
		}
	}
	for _, item := range s.servers.items {
		m := nodeMember{at: item.at, value: item}
		if name := item.memberValue("name"); name.isKind(stringNode) {
			m.name, m.at = name.text, name.at
		} else if transport := item.memberValue("transport"); transport.isKind(objectNode) {
			m.name = deriveServerName(transport)
		}
		if err := r.readServer(s, m); err != nil {
			return err
		}
	}
	return nil
}

// readServer reads one server. It skips an unusable server and adds a note.
func (r *importReader) readServer(s serverSection, m nodeMember) error {
	if !m.value.isKind(objectNode) {
		r.addNote(&r.file.Notes, m.at, "", "server "+quoteClipped(m.name)+" is left out: it is not an object", "compare it with the client's own file")
		return nil
	}
	if len(r.file.Servers) == maxServers {
		return &syntaxError{m.at, fmt.Sprintf("there are more than %d servers", maxServers), "import them in parts"}
	}
	b := entryBuilder{importReader: r, client: s.client, server: ImportedServer{OriginalName: m.name}}
	b.server.Name = r.taken.UniqueName(m.name)
	b.buildEntry(m.value)
	encoded, err := b.server.Entry.JSON()
	if err != nil {
		return err
	}
	if mistakes := config.CheckServerEntry(b.server.Name, encoded); len(mistakes) > 0 || b.skipReason != "" {
		why, hint := b.skipReason, ""
		if why == "" {
			why, hint = mistakes[0].Message, mistakes[0].Hint
		}
		r.addNote(&r.file.Notes, m.at, "", "server "+quoteClipped(m.name)+" is left out: "+why, hint)
		return nil
	}
	if b.server.Name != m.name {
		r.addNote(&b.server.Notes, m.at, "", fmt.Sprintf("the name of the server in MCPProxy is %s, not %s", b.server.Name, quoteClipped(m.name)),
			"a name has letters, digits, dots, dashes and underscores, but no __, and must not look like another name")
	}
	if s.project != "" {
		r.addNote(&b.server.Notes, m.at, "", "the client has it for one project only: "+quoteClipped(s.project), "here every client has it")
	}
	slices.SortStableFunc(b.server.Notes, func(x, y Note) int {
		return cmp.Or(x.Line-y.Line, x.Column-y.Column)
	})
	r.taken.AddName(b.server.Name)
	r.file.Servers = append(r.file.Servers, b.server)
	return nil
}
