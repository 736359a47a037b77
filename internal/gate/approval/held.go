package approval

import (
	"sync"
	"time"
)

// maxHeld limits the waiting times of a server, so that a server with ever new names does not fill the
// store.
const maxHeld = 2 * 50_000

// holds records since when definitions wait: the last one of each tool. No decision depends on it.
type holds struct {
	mu sync.Mutex // guards byServer
	of map[string]map[named]Held
}

// load sets the stored times.
func (h *holds) load(saved map[string][]Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = map[string]map[named]Held{}
	for server, all := range saved {
		h.of[server] = make(map[named]Held, len(all))
		for _, one := range all {
			h.of[server][named{one.Kind, one.Tool}] = one
		}
	}
}

// note records the evaluations that wait, and returns the new ones.
func (h *holds) note(server string, now time.Time, all []Candidate, judged []Evaluation) (news []Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string]map[named]Held{}
	}
	known := h.of[server]
	if known == nil {
		known = map[named]Held{}
		h.of[server] = known
	}
	for i, c := range all {
		about := named{c.Kind, c.Tool}
		before, there := known[about]
		if judged[i].Why == "" || there && before.Fingerprint == c.Fingerprint || !there && len(known) >= maxHeld {
			continue
		}
		known[about] = Held{c.Kind, c.Tool, c.Fingerprint, now}
		news = append(news, known[about])
	}
	return news
}

func (h *holds) forget(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, server)
}

func (h *holds) saved() map[string][]Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string][]Held, len(h.of))
	for server, known := range h.of {
		for _, one := range known {
			all[server] = append(all[server], one)
		}
	}
	return all
}

// since returns since when a definition waits; zero if unknown.
func (h *holds) since(server string, c Candidate) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.of[server][named{c.Kind, c.Tool}]; held.Fingerprint == c.Fingerprint {
		return held.Since
	}
	return time.Time{}
}
