package store

import (
	"context"
	"encoding/json"
)

// SaveTools stores the definitions that a server returned most recently. They replace earlier definitions.
func (s *commonStore) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.write("DELETE FROM tool WHERE server = ?", server)
		for i, raw := range raws { // another instance may be doing the same
			t.write(`INSERT INTO tool (server, position, definition) VALUES (?, ?, ?)
				ON CONFLICT (server, position) DO UPDATE SET definition = excluded.definition`, server, int64(i), []byte(raw))
		}
		return nil
	})
}

// LoadTools returns the last known definitions of all servers.
func (s *commonStore) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	return viewed(ctx, s.db, func(ctx context.Context, r sqlReader) (map[string][]json.RawMessage, error) {
		tools := map[string][]json.RawMessage{}
		var server string
		var raw []byte
		return tools, r.eachRow(ctx, scanTargets{&server, &raw}, func() error {
			tools[server] = append(tools[server], raw)
			return nil
		}, "SELECT server, definition FROM tool ORDER BY server, position")
	})
}

// ForgetTools deletes the definitions of a server.
func (s *commonStore) ForgetTools(ctx context.Context, server string) error {
	return s.SaveTools(ctx, server, nil)
}
