package doctor

import "strings"

// Unavailable is a server that cannot be used, and why, as far as files tell.
type Unavailable struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// PendingReviews counts what waits for a user's review.
type PendingReviews struct {
	Servers []string `json:"servers"` // by name
	Tools   int      `json:"tools"`
	Offers  int      `json:"offers"` // prompts, resources, templates, instructions
}

// Unavailable returns the enabled servers and why each cannot be used while no daemon runs.
func (f *Facts) Unavailable() []Unavailable {
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
	out := []Unavailable{}
	for _, s := range f.Servers {
		switch why := said[s.Name]; {
		case s.ProposedBy != "" || !s.Enabled:
		case s.Quarantined:
			out = append(out, Unavailable{s.Name, "waits for your review: mcpproxy upstream approve " + s.Name})
		case why != "":
			out = append(out, Unavailable{s.Name, why})
		default:
			out = append(out, Unavailable{s.Name, "is not started: MCPProxy is not running"})
		}
	}
	return out
}

// Waiting returns what waits for review, from the file and the database.
func (f *Facts) Waiting() PendingReviews {
	w := PendingReviews{Servers: []string{}}
	for _, s := range f.Servers {
		if s.Quarantined && s.Enabled || s.ProposedBy != "" {
			w.Servers = append(w.Servers, s.Name)
			continue
		}
		waiting := f.Sight.Waiting[s.Name]
		w.Tools, w.Offers = w.Tools+waiting.Tools, w.Offers+waiting.Primitives
	}
	return w
}

// ConfigError returns the mistakes of the configuration file, one per line; "" for none.
func (f *Facts) ConfigError() string {
	var lines []string
	for _, m := range f.Mistakes {
		lines = append(lines, f.formatMistake(m))
	}
	return strings.Join(lines, "\n")
}
