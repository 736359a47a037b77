package doctor

import "strings"

// UnavailableServer is a server that cannot be used, with the reason found in the files.
type UnavailableServer struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// PendingReviews counts the servers and definitions that wait for a user's review.
type PendingReviews struct {
	Servers []string `json:"servers"` // sorted by name
	Tools   int      `json:"tools"`
	Offers  int      `json:"offers"` // prompts, resources, templates and instructions
}

// UnavailableServers returns the enabled servers that cannot be used, with reasons, while no daemon is running.
func (f *Facts) UnavailableServers() []UnavailableServer {
	said := map[string]string{}
	for _, c := range checks {
		if c.Group != GroupServers {
			continue
		}
		for _, one := range c.run(f) {
			if _, before := said[one.Subject]; !before && (one.State == Bad || one.State == Warn) {
				said[one.Subject] = strings.TrimSuffix(strings.TrimPrefix(one.What, "Server "+one.Subject+": "), ".")
			}
		}
	}
	out := []UnavailableServer{}
	for _, s := range f.Servers {
		switch why := said[s.Name]; {
		case s.ProposedBy != "" || !s.Enabled:
		case s.Quarantined:
			out = append(out, UnavailableServer{s.Name, "waits for your review: mcpproxy upstream approve " + s.Name})
		case why != "":
			out = append(out, UnavailableServer{s.Name, why})
		default:
			out = append(out, UnavailableServer{s.Name, "is not started: MCPProxy is not running"})
		}
	}
	return out
}

// PendingReviews reads the pending reviews from the configuration file and the database.
func (f *Facts) PendingReviews() PendingReviews {
	w := PendingReviews{Servers: []string{}}
	for _, s := range f.Servers {
		if s.Quarantined && s.Enabled || s.ProposedBy != "" {
			w.Servers = append(w.Servers, s.Name)
			continue
		}
		waiting := f.DatabaseFacts.Waiting[s.Name]
		w.Tools, w.Offers = w.Tools+waiting.Tools, w.Offers+waiting.Primitives
	}
	return w
}

// ConfigErrorText returns the errors in the configuration file, one per line, or "" if there are none.
func (f *Facts) ConfigErrorText() string {
	var lines []string
	for _, m := range f.Mistakes {
		lines = append(lines, f.formatMistake(m))
	}
	return strings.Join(lines, "\n")
}
