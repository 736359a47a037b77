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
	mu       sync.Mutex // guards byServer
	byServer map[string]map[entryKey]Held
}

// load sets the stored times.
func (h *holds) load(saved map[string][]Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byServer = map[string]map[entryKey]Held{}
	for server, all := range saved {
		h.byServer[server] = make(map[entryKey]Held, len(all))
		for _, one := range all {
			h.byServer[server][entryKey{one.Kind, one.Tool}] = one
		}
	}
}

// note records the evaluations that wait, and returns the new ones.
func (h *holds) note(server string, now time.Time, all []Candidate, judged []Evaluation) (news []Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byServer == nil {
		h.byServer = map[string]map[entryKey]Held{}
	}
	known := h.byServer[server]
	if known == nil {
		known = map[entryKey]Held{}
		h.byServer[server] = known
	}
	for i, c := range all {
		about := entryKey{c.Kind, c.Tool}
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
	delete(h.byServer, server)
}

func (h *holds) saved() map[string][]Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string][]Held, len(h.byServer))
	for server, known := range h.byServer {
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
	if held := h.byServer[server][entryKey{c.Kind, c.Tool}]; held.Fingerprint == c.Fingerprint {
		return held.Since
	}
	return time.Time{}
}
