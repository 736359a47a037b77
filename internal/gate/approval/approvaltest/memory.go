// Package approvaltest is a keeper of approvals in memory, for tests of what
// stands on approval.
//
// It keeps what it is given, wholly or, when it is told to fail, not at all. A
// book made anew from the same Memory knows what the one before it decided. It
// is for tests only: no package of the product imports it.
package approvaltest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// Memory is an approval.Keeper. The zero value is empty.
type Memory struct {
	mu          sync.Mutex // guards what follows
	tools       map[subject]approval.Row
	definitions map[defined]json.RawMessage
	launches    map[string]approval.Launch
	proposals   []approval.Proposal
	held        map[string][]approval.Held
	lost        bool
	err         error
	saves       int
}

// subject is what a row is about.
type subject struct {
	kind tool.DefinitionKind
	tool.ID
}

// defined is a definition of one, by its fingerprint.
type defined struct {
	subject
	tool.Fingerprint
}

// Fail makes everything fail with err; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	m.err = err
	m.mu.Unlock()
}

// Lose empties the memory and says so.
func (m *Memory) Lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools, m.definitions, m.launches, m.proposals, m.held, m.lost = nil, nil, nil, nil, nil, true
}

// Copy returns a memory with the same content.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{tools: maps.Clone(m.tools), definitions: maps.Clone(m.definitions), launches: maps.Clone(m.launches),
		proposals: slices.Clone(m.proposals), held: maps.Clone(m.held), lost: m.lost}
}

// Saves is how often something was saved.
func (m *Memory) Saves() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves
}

// Book returns a book that has loaded what is kept.
func (m *Memory) Book() *approval.Book {
	b := approval.NewBook(m, nil)
	if err := b.Load(context.Background()); err != nil {
		panic(err)
	}
	return b
}

// LoadApprovals implements approval.Keeper.
func (m *Memory) LoadApprovals(context.Context) (approval.Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := approval.Saved{Tools: map[string][]approval.Row{}, Proposals: slices.Clone(m.proposals), Held: maps.Clone(m.held), Lost: m.lost}
	for id, row := range m.tools {
		saved.Tools[id.Server] = append(saved.Tools[id.Server], row)
	}
	for _, l := range m.launches {
		saved.Launches = append(saved.Launches, l)
	}
	return saved, m.err
}

// SaveApprovals implements approval.Keeper.
func (m *Memory) SaveApprovals(_ context.Context, c approval.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.tools == nil {
		m.tools, m.definitions, m.launches = map[subject]approval.Row{}, map[defined]json.RawMessage{}, map[string]approval.Launch{}
	}
	m.saves++
	m.proposals = slices.DeleteFunc(m.proposals, func(p approval.Proposal) bool { return p.Name == c.Settle })
	if c.Propose != nil {
		m.proposals = append(m.proposals, *c.Propose)
	}
	if c.Forget {
		maps.DeleteFunc(m.tools, func(id subject, _ approval.Row) bool { return id.Server == c.Server })
	}
	if c.Forget || c.Unpin {
		delete(m.launches, c.Server)
	}
	if c.Forget {
		delete(m.held, c.Server)
	}
	if c.Launch != nil {
		m.launches[c.Server] = *c.Launch
	}
	for _, row := range c.Tools {
		id := subject{row.Kind, tool.ID{Server: c.Server, Tool: row.Tool}}
		if row.Definition != nil && row.Pin != nil {
			m.definitions[defined{id, row.Pin.Fingerprint}] = row.Definition
		}
		row.Definition, row.Was = nil, nil // as a database does, which has no place for it
		m.tools[id] = row
	}
	return nil
}

// RestoreApprovals implements approval.Keeper.
func (m *Memory) RestoreApprovals(_ context.Context, s approval.Saved) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.saves++
	definitions := m.definitions
	m.tools, m.definitions, m.launches = map[subject]approval.Row{}, map[defined]json.RawMessage{}, map[string]approval.Launch{}
	for server, rows := range s.Tools {
		for _, row := range rows {
			id := subject{row.Kind, tool.ID{Server: server, Tool: row.Tool}}
			for key, definition := range definitions {
				if key.subject == id {
					m.definitions[key] = definition
				}
			}
			if row.Pin != nil && row.Definition != nil {
				m.definitions[defined{id, row.Pin.Fingerprint}] = row.Definition
			}
			if row.Definition, row.Was = nil, nil; row.Decided() {
				m.tools[id] = row
			}
		}
	}
	for _, l := range s.Launches {
		m.launches[l.Server] = l
	}
	m.proposals, m.lost, m.held = slices.Clone(s.Proposals), s.Lost, maps.Clone(s.Held)
	return nil
}

// SaveHeld implements approval.Keeper.
func (m *Memory) SaveHeld(_ context.Context, server string, all []approval.Held) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.held == nil {
		m.held = map[string][]approval.Held{}
	}
	m.held[server] = slices.Concat(m.held[server], all)
	return nil
}

// ApprovedDefinition implements approval.Keeper.
func (m *Memory) ApprovedDefinition(_ context.Context, kind tool.DefinitionKind, of tool.ID) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := subject{kind, of}
	row := m.tools[id]
	if row.Pin == nil {
		return nil, m.err
	}
	return m.definitions[defined{id, row.Pin.Fingerprint}], m.err
}
