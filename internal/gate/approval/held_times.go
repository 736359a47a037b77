package approval

import (
	"sync"
	"time"
)

// maxHeld limits the waiting times of a server, so that a server that keeps listing new names does not fill the
// store.
const maxHeld = 2 * 50_000

// heldTimes records since when definitions wait, for the last definition of each tool. No decision depends on it.
type heldTimes struct {
	mu       sync.Mutex // guards byServer
	byServer map[string]map[definitionKey]HeldDefinition
}

// setAll replaces the times with the stored ones.
func (h *heldTimes) setAll(saved map[string][]HeldDefinition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byServer = map[string]map[definitionKey]HeldDefinition{}
	for server, all := range saved {
		h.byServer[server] = make(map[definitionKey]HeldDefinition, len(all))
		for _, one := range all {
			h.byServer[server][definitionKey{one.Kind, one.Tool}] = one
		}
	}
}

// recordWaiting records the evaluations that wait, and returns the new ones.
func (h *heldTimes) recordWaiting(server string, now time.Time, all []CandidateDefinition, judged []Evaluation) (news []HeldDefinition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byServer == nil {
		h.byServer = map[string]map[definitionKey]HeldDefinition{}
	}
	known := h.byServer[server]
	if known == nil {
		known = map[definitionKey]HeldDefinition{}
		h.byServer[server] = known
	}
	for i, c := range all {
		about := definitionKey{c.Kind, c.Tool}
		before, there := known[about]
		if judged[i].Why == "" || there && before.Fingerprint == c.Fingerprint || !there && len(known) >= maxHeld {
			continue
		}
		known[about] = HeldDefinition{c.Kind, c.Tool, c.Fingerprint, now}
		news = append(news, known[about])
	}
	return news
}

func (h *heldTimes) forgetServer(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byServer, server)
}

func (h *heldTimes) copyAll() map[string][]HeldDefinition {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string][]HeldDefinition, len(h.byServer))
	for server, known := range h.byServer {
		for _, one := range known {
			all[server] = append(all[server], one)
		}
	}
	return all
}

// heldSince returns the time since when a definition waits; zero if unknown.
func (h *heldTimes) heldSince(server string, c CandidateDefinition) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.byServer[server][definitionKey{c.Kind, c.Tool}]; held.Fingerprint == c.Fingerprint {
		return held.Since
	}
	return time.Time{}
}
