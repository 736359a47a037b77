// Package approvaltest is a store of approvals in memory, for tests of packages that use approvals.
//
// The store saves a change completely or, after SetError, not at all. A new book from the same MemoryStore has the
// decisions of the earlier one. It is for tests only.
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

// MemoryStore is an approval.Store in memory. The zero value is empty.
type MemoryStore struct {
	mu          sync.Mutex // guards the following fields
	tools       map[rowKey]approval.DecisionRow
	definitions map[definitionKey]json.RawMessage
	launches    map[string]approval.ApprovedLaunch
	proposals   []approval.ServerProposal
	held        map[string][]approval.HeldDefinition
	lost        bool
	err         error
	saves       int
}

// rowKey identifies a row.
type rowKey struct {
	kind tool.DefinitionKind
	tool.ID
}

// definitionKey identifies a definition: its row and fingerprint.
type definitionKey struct {
	rowKey
	tool.Fingerprint
}

// SetError makes every operation fail with err, until SetError(nil).
func (m *MemoryStore) SetError(err error) {
	m.mu.Lock()
	m.err = err
	m.mu.Unlock()
}

// MarkLost deletes everything and reports it as lost.
func (m *MemoryStore) MarkLost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools, m.definitions, m.launches, m.proposals, m.held, m.lost = nil, nil, nil, nil, nil, true
}

// Copy returns a memory with the same content.
func (m *MemoryStore) Copy() *MemoryStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &MemoryStore{tools: maps.Clone(m.tools), definitions: maps.Clone(m.definitions), launches: maps.Clone(m.launches),
		proposals: slices.Clone(m.proposals), held: maps.Clone(m.held), lost: m.lost}
}

// SaveCount returns how often something was saved.
func (m *MemoryStore) SaveCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves
}

// NewBook returns a book that has loaded the stored decisions.
func (m *MemoryStore) NewBook() *approval.Book {
	b := approval.NewBook(m, nil)
	if err := b.Load(context.Background()); err != nil {
		panic(err)
	}
	return b
}

// LoadApprovals implements approval.Store.
func (m *MemoryStore) LoadApprovals(context.Context) (approval.StoredDecisions, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := approval.StoredDecisions{Tools: map[string][]approval.DecisionRow{}, Proposals: slices.Clone(m.proposals), Held: maps.Clone(m.held), Lost: m.lost}
	for id, row := range m.tools {
		saved.Tools[id.Server] = append(saved.Tools[id.Server], row)
	}
	for _, l := range m.launches {
		saved.Launches = append(saved.Launches, l)
	}
	return saved, m.err
}

// SaveApprovals implements approval.Store.
func (m *MemoryStore) SaveApprovals(_ context.Context, c approval.ChangeSet) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.tools == nil {
		m.tools, m.definitions, m.launches = map[rowKey]approval.DecisionRow{}, map[definitionKey]json.RawMessage{}, map[string]approval.ApprovedLaunch{}
	}
	m.saves++
	m.proposals = slices.DeleteFunc(m.proposals, func(p approval.ServerProposal) bool { return p.Name == c.RemoveProposal })
	if c.Propose != nil {
		m.proposals = append(m.proposals, *c.Propose)
	}
	if c.Forget {
		maps.DeleteFunc(m.tools, func(id rowKey, _ approval.DecisionRow) bool { return id.Server == c.Server })
	}
	if c.Forget || c.RevokeLaunch {
		delete(m.launches, c.Server)
	}
	if c.Forget {
		delete(m.held, c.Server)
	}
	if c.Launch != nil {
		m.launches[c.Server] = *c.Launch
	}
	for _, row := range c.Tools {
		id := rowKey{row.Kind, tool.ID{Server: c.Server, Tool: row.Tool}}
		if row.Definition != nil && row.Pin != nil {
			m.definitions[definitionKey{id, row.Pin.Fingerprint}] = row.Definition
		}
		row.Definition, row.Was = nil, nil // as in the database, which does not store them with the row
		m.tools[id] = row
	}
	return nil
}

// ReplaceApprovals implements approval.Store.
func (m *MemoryStore) ReplaceApprovals(_ context.Context, s approval.StoredDecisions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.saves++
	definitions := m.definitions
	m.tools, m.definitions, m.launches = map[rowKey]approval.DecisionRow{}, map[definitionKey]json.RawMessage{}, map[string]approval.ApprovedLaunch{}
	for server, rows := range s.Tools {
		for _, row := range rows {
			id := rowKey{row.Kind, tool.ID{Server: server, Tool: row.Tool}}
			for key, definition := range definitions {
				if key.rowKey == id {
					m.definitions[key] = definition
				}
			}
			if row.Pin != nil && row.Definition != nil {
				m.definitions[definitionKey{id, row.Pin.Fingerprint}] = row.Definition
			}
			if row.Definition, row.Was = nil, nil; row.HasDecision() {
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

// SaveHeld implements approval.Store.
func (m *MemoryStore) SaveHeld(_ context.Context, server string, all []approval.HeldDefinition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.held == nil {
		m.held = map[string][]approval.HeldDefinition{}
	}
	m.held[server] = slices.Concat(m.held[server], all)
	return nil
}

// ApprovedDefinition implements approval.Store.
func (m *MemoryStore) ApprovedDefinition(_ context.Context, kind tool.DefinitionKind, of tool.ID) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := rowKey{kind, of}
	row := m.tools[id]
	if row.Pin == nil {
		return nil, m.err
	}
	return m.definitions[definitionKey{id, row.Pin.Fingerprint}], m.err
}
