package catalog_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
)

// resources returns n resources as a server lists them. Some differ from those of an earlier round.
func resources(n, changed, round int) []json.RawMessage {
	all := make([]json.RawMessage, n)
	for i := range all {
		text := "first"
		if i < changed {
			text = fmt.Sprint("round ", round)
		}
		all[i] = json.RawMessage(fmt.Sprintf(`{"uri":"file:///srv/notes/2025/note-%[1]d.md","name":"note-%[1]d.md","title":"Note %[1]d","description":"Notes of the meeting about the roof, %[2]s.","mimeType":"text/markdown","size":%[3]d,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:%02[4]dZ"}}`,
			i, text, 1000+i, i%60))
	}
	return all
}

// BenchmarkOffers measures the processing of a list of 5,000 resources: the first time, after a change of 100
// resources, with 100 new resources each time, without a change, and for a list that a client sees. The decisions go to
// a real store.
func BenchmarkOffers(b *testing.B) {
	const n, changed = 5_000, 100
	open := func(b *testing.B) *catalog.Catalog {
		db := store.OpenSQLite(filepath.Join(b.TempDir(), "mcpproxy.db"), slog.New(slog.DiscardHandler))
		b.Cleanup(func() { _ = db.Close() })
		book := approval.NewBook(db, nil)
		if err := book.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
		cfg := config.DefaultConfig()
		cfg.Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustScan}}
		return catalog.New(catalog.Options{Servers: cfg.Servers, Approvals: book, Logger: slog.New(slog.DiscardHandler)})
	}
	waiting := func(b *testing.B, c *catalog.Catalog, want int) {
		got := 0
		for _, count := range c.CurrentPrimitives("s").Counts() {
			got += count.Waiting
		}
		if got != want {
			b.Fatalf("got %d pending, want %d", got, want)
		}
	}
	b.Run("first", func(b *testing.B) {
		all := resources(n, 0, 0)
		for b.Loop() {
			b.StopTimer()
			c := open(b)
			b.StartTimer()
			c.StorePrimitives(b.Context(), "s", tool.KindResource, all)
			waiting(b, c, 0)
		}
	})
	b.Run("100 changed", func(b *testing.B) {
		c := open(b)
		c.StorePrimitives(b.Context(), "s", tool.KindResource, resources(n, 0, 0))
		lists := [][]json.RawMessage{resources(n, changed, 1), resources(n, changed, 2)}
		i := 0
		for b.Loop() {
			c.StorePrimitives(b.Context(), "s", tool.KindResource, lists[i%2])
			waiting(b, c, changed)
			i++
		}
	})
	b.Run("100 new", func(b *testing.B) {
		c := open(b)
		c.StorePrimitives(b.Context(), "s", tool.KindResource, resources(n, 0, 0))
		i := 0
		for b.Loop() {
			b.StopTimer()
			list := resources(n, 0, 0)
			for k := range changed {
				list[k] = json.RawMessage(fmt.Sprintf(`{"uri":"file:///srv/new/%d-%d.md","name":"new.md","description":"Notes of another meeting."}`, i, k))
			}
			b.StartTimer()
			c.StorePrimitives(b.Context(), "s", tool.KindResource, list)
			if i < 400 { // later there is no room for more
				waiting(b, c, 0)
			}
			i++
		}
	})
	b.Run("the same", func(b *testing.B) {
		c, all := open(b), resources(n, 0, 0)
		c.StorePrimitives(b.Context(), "s", tool.KindResource, all)
		for b.Loop() {
			c.StorePrimitives(b.Context(), "s", tool.KindResource, all)
		}
	})
	b.Run("shown to a client", func(b *testing.B) {
		c, all := open(b), resources(n, 0, 0)
		c.StorePrimitives(b.Context(), "s", tool.KindResource, all)
		for b.Loop() {
			c.FilterClientList(b.Context(), "s", tool.KindResource, all)
		}
	})
}
