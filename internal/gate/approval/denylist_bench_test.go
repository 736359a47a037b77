package approval_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/testutil/approvaltest"
)

// BenchmarkTenThousand stores the first lists of 100 servers with 100 tools each, and reads them again.
func BenchmarkTenThousand(b *testing.B) {
	var all []approval.CandidateDefinition
	for i := range 100 {
		all = append(all, denylistCandidate(fmt.Sprint("a_tool_with_a_name_", i), i))
	}
	for b.Loop() {
		store := &approvaltest.MemoryStore{}
		path := filepath.Join(b.TempDir(), "restrictions.log")
		for range 2 {
			k := approval.NewDenylist(path, store, nil, nil)
			book := approval.NewBook(k, nil)
			if err := book.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
			for s := range 100 {
				if _, err := book.AcceptTrusted(b.Context(), fmt.Sprint("server", s), approval.EvaluationRules{Trust: approval.Auto}, all); err != nil {
					b.Fatal(err)
				}
			}
			if err := k.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
