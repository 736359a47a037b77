package upstream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"mcpproxy/internal/tool"
)

// maxLearnt bounds the tools of a server that it lists to some clients alone.
const maxLearnt = 500

// learnt are the tools that a server lists to clients and not to us: some have
// tools for those alone who can be asked something. They belong to what the
// server lists from then on; what it lists to us goes first.
type learnt map[string]tool.Definition

// Learn takes tools that a server has listed to a client. It says whether there
// are some among them that were not known, of which the observer is told.
func (s *Set) Learn(server string, definitions []json.RawMessage) bool {
	sv := s.find(server)
	if sv == nil {
		return false
	}
	l := sv.live.Load()
	if l == nil {
		return false
	}
	news := false
	for _, raw := range definitions {
		d, err := tool.ParseDefinition(server, bytes.Clone(raw))
		if err == nil && !l.lists(d.ID.Tool) {
			news = sv.learn(d) || news
		}
	}
	if news {
		signal(sv.taught)
	}
	return news
}

// learn says whether it is news.
func (s *server) learn(d tool.Definition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.learnt[d.ID.Tool]
	if is && bytes.Equal(known.Raw, d.Raw) || !is && len(s.learnt) >= maxLearnt {
		return false
	}
	if s.learnt == nil {
		s.learnt = learnt{}
	}
	s.learnt[d.ID.Tool] = d
	return true
}

// publish makes own, which the server has listed to us, and what was learnt
// besides the tools of the server.
func (s *server) publish(l *liveLink, own []tool.Definition) {
	l.own.Store(&own)
	all := slices.Clone(own)
	s.mu.Lock()
	for name := range s.learnt {
		if l.lists(name) {
			delete(s.learnt, name)
		}
	}
	others := make(learnt, len(s.learnt))
	for _, name := range slices.Sorted(maps.Keys(s.learnt)) {
		d := s.learnt[name]
		d.ForClients = true
		others[name] = d
		all = append(all, d)
	}
	s.mu.Unlock()
	l.others.Store(&others)
	l.setListed(all) // before it is told: what was judged on the old list is not sent any more
	s.tell(all)
}

// forOthers says whether the server has a tool for others and not for us.
func (l *liveLink) forOthers(name string) bool {
	_, is := (*l.others.Load())[name]
	return is
}

// lists says whether the server has listed a tool to us.
func (l *liveLink) lists(name string) bool {
	return slices.ContainsFunc(*l.own.Load(), func(d tool.Definition) bool { return d.ID.Tool == name })
}
