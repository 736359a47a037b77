package catalog

import (
	"cmp"
	"slices"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// shownDefinition returns a definition with the user's name and description. It returns d itself if there are none.
func shownDefinition(d *tool.Definition, s *config.ToolSettings) *tool.Definition {
	if s == nil || s.Alias == "" && s.Description == "" && s.AddDescription == "" {
		return d
	}
	shown := *d
	shown.Alias, shown.Description = s.Alias, cmp.Or(s.Description, d.Description)
	if s.AddDescription != "" && shown.Description != "" {
		shown.Description += "\n\n"
	}
	shown.Description += s.AddDescription
	return &shown
}

// Shown returns the definition as agents see it, with the user's name and description. Its Raw is the server's.
func (t *Tool) Shown() *tool.Definition { return t.shown }

// Settings returns the user's settings for the tool, nil if there are none.
func (t *Tool) Settings() *config.ToolSettings { return t.settings }

// IsAlways reports whether every search result begins with the tool.
func (t *Tool) IsAlways() bool { return t.settings != nil && t.settings.Always }

// ShadowedBy returns the name of the tool of the same server whose alias is this tool's own name, "" if there is none.
// The alias keeps the name, even while the server does not list the aliased tool: a name that the user chose for one
// tool must not reach another one because the server changed its list. The shadowed tool is available only at the
// address of its server.
func (t *Tool) ShadowedBy() string { return t.shadowedBy }

// Resolve returns the tool that a caller with this scope means by a name, or nil: the tool with that alias, else the
// tool with that name of its own. In a scope without the aliased tool, the alias does not exist.
func (s *Snapshot) Resolve(id tool.ID, within policy.Scope) *Tool {
	if t := s.aliases[id]; t != nil && (!within.IsBounded() || within.AllowsTool(t.ID.Server, t.ID.Tool)) {
		return t
	}
	if t := s.tools[id]; t != nil && t.shadowedBy == "" {
		return t
	}
	return nil
}

// AlwaysTools returns the callable tools that every search result begins with.
func (s *Snapshot) AlwaysTools() []*Tool { return s.always }

// registerToolSettings enters the aliases of a server's tools, and the tools that are always listed.
func (s *Snapshot) registerToolSettings(server *config.Server) {
	for _, one := range server.ToolSettings {
		if one.Alias == "" {
			continue
		}
		shown := tool.ID{Server: server.Name, Tool: one.Alias}
		if t := s.tools[tool.ID{Server: server.Name, Tool: one.Tool}]; t != nil {
			if s.aliases == nil {
				s.aliases = map[tool.ID]*Tool{}
			}
			s.aliases[shown] = t
		}
		if own := s.tools[shown]; own != nil {
			own.shadowedBy = one.Tool
		}
	}
	for _, one := range server.ToolSettings {
		t := s.tools[tool.ID{Server: server.Name, Tool: one.Tool}]
		if one.Always && t != nil && visibilityOf(t) == visibleCallable && len(s.always) < config.MaxAlwaysTools {
			s.always = append(s.always, t)
		}
	}
}

// newIndexPart returns a server's part of the index, with the user's names and texts.
func newIndexPart(server string, settings []config.ToolSettings, tools []*tool.Definition) *search.ServerIndexPart {
	if len(settings) > 0 {
		of := config.Server{ToolSettings: settings}
		tools = slices.Clone(tools)
		for i, d := range tools {
			tools[i] = shownDefinition(d, of.ToolSettingsOf(d.ID.Tool))
		}
	}
	return search.NewServerIndexPart(server, tools)
}

// indexWithSettings returns a server's list whose part of the index has the settings. It stores a list that it changes.
// The caller holds mu.
func (c *Catalog) indexWithSettings(server *config.Server, l *toolList) *toolList {
	if slices.Equal(l.settings, server.ToolSettings) {
		return l
	}
	definitions := make([]*tool.Definition, len(l.entries))
	for i, e := range l.entries {
		definitions[i] = e.definition
	}
	next := *l
	next.settings, next.indexPart = server.ToolSettings, newIndexPart(server.Name, server.ToolSettings, definitions)
	c.lists[server.Name] = &next
	return &next
}
