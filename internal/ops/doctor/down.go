package doctor

import "strings"

// Absent is a server that cannot be used, and why, as far as files tell.
type Absent struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Waits is what waits for a person.
type Waits struct {
	Servers []string `json:"servers"` // by name
	Tools   int      `json:"tools"`
	Offers  int      `json:"offers"` // prompts, resources, templates, instructions
}

// Absent returns the enabled servers with what is wrong with each, or that it waits, or
// only that MCPProxy does not run.
func (f *Facts) Absent() []Absent {
	said := map[string]string{}
	for _, c := range checks {
		if c.Group != GroupServers {
			continue
		}
		for _, one := range c.look(f) {
			if _, before := said[one.Subject]; !before && (one.State == Bad || one.State == Warn) {
				said[one.Subject] = strings.TrimSuffix(strings.TrimPrefix(one.What, "Server "+one.Subject+": "), ".")
			}
		}
	}
	out := []Absent{}
	for _, s := range f.Servers {
		switch why := said[s.Name]; {
		case s.ProposedBy != "" || !s.Enabled:
		case s.Quarantined:
			out = append(out, Absent{s.Name, "waits for your review: mcpproxy upstream approve " + s.Name})
		case why != "":
			out = append(out, Absent{s.Name, why})
		default:
			out = append(out, Absent{s.Name, "is not started: MCPProxy is not running"})
		}
	}
	return out
}

// Waiting returns what waits for a person, by the file and the database.
func (f *Facts) Waiting() Waits {
	w := Waits{Servers: []string{}}
	for _, s := range f.Servers {
		if s.Quarantined && s.Enabled || s.ProposedBy != "" {
			w.Servers = append(w.Servers, s.Name)
			continue
		}
		waiting := f.Sight.Waiting[s.Name]
		w.Tools, w.Offers = w.Tools+waiting.Tools, w.Offers+waiting.Offers
	}
	return w
}

// ConfigError is what is wrong with the configuration file, a line each; "" for nothing.
func (f *Facts) ConfigError() string {
	var lines []string
	for _, m := range f.Mistakes {
		lines = append(lines, f.place(m))
	}
	return strings.Join(lines, "\n")
}
