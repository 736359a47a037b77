package ops

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
)

// toolListCache caches the tool lists that clients read page by page. The lists keep old catalog snapshots in memory,
// so the cache is small and short-lived.
type toolListCache struct {
	mu  sync.Mutex       // guards the field all
	all []*filteredTools // oldest first
}

// filteredTools contains the tools that match a filter.
type filteredTools struct {
	id       string
	filter   ToolFilter
	tools    []*catalog.Tool
	use      usageByTool
	facets   Facets
	unhinted []Unhinted
	used     time.Time
}

const (
	maxLists     = 8
	listLifetime = time.Minute // lifetime since the last read page
)

// add stores a list with a new ID.
func (l *toolListCache) add(one *filteredTools) {
	one.id, one.used = rand.Text(), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeExpired()
	if l.all = append(l.all, one); len(l.all) > maxLists {
		l.all = slices.Delete(l.all, 0, 1)
	}
}

// find returns the list with this ID and filter, or nil.
func (l *toolListCache) find(id string, f ToolFilter) *filteredTools {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeExpired()
	for _, one := range l.all {
		if id != "" && one.id == id && one.filter == f {
			one.used = time.Now()
			return one
		}
	}
	return nil
}

// removeExpired removes the lists that were not read during listLifetime.
func (l *toolListCache) removeExpired() {
	l.all = slices.DeleteFunc(l.all, func(one *filteredTools) bool { return time.Since(one.used) > listLifetime })
}
