package ops

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
)

// lists are those that somebody pages through. They hold tools of snapshots that are
// over, so that they are few and not kept for long.
type lists struct {
	mu  sync.Mutex // guards all
	all []*list    // oldest first
}

// list is the tools that a filter selected.
type list struct {
	id       string
	filter   ToolFilter
	tools    []*catalog.Tool
	use      toolUse
	facets   Facets
	unhinted []Unhinted
	used     time.Time
}

const (
	maxLists  = 8
	listsKept = time.Minute // after the last page
)

// keep gives a list an id under which it is found for a while.
func (l *lists) keep(one *list) {
	one.id, one.used = rand.Text(), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	if l.all = append(l.all, one); len(l.all) > maxLists {
		l.all = slices.Delete(l.all, 0, 1)
	}
}

// kept returns the list of an id that was selected by this filter, or nil.
func (l *lists) kept(id string, f ToolFilter) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	for _, one := range l.all {
		if id != "" && one.id == id && one.filter == f {
			one.used = time.Now()
			return one
		}
	}
	return nil
}

// tidy forgets those that nobody has paged through for a while.
func (l *lists) tidy() {
	l.all = slices.DeleteFunc(l.all, func(one *list) bool { return time.Since(one.used) > listsKept })
}
