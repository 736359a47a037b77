package catalog

import (
	"context"
	"maps"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// name says what the tools of a server are called, before anything of them is
// judged.
func (c *Catalog) name(server string, entries []*entry) {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.definition.ID.Tool
	}
	c.names.Set(server, names)
}

// doubt has wait what orders something about a tool of another server and was
// accepted by the trust in its own alone: before that tool came. It returns when
// that is done, or somebody else is doing it; false is that it has to be done again,
// which it will be.
func (c *Catalog) doubt(ctx context.Context, came bool) bool {
	d := &c.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	if came {
		d.came++
	}
	if d.running {
		return true // who looks will see it
	}
	d.running = true
	defer func() { d.running = false }()
	for d.done < d.came {
		seen := d.came
		d.mu.Unlock()
		done := c.doubtAll(ctx)
		d.mu.Lock()
		if !done {
			if came { // else who asks tries again
				signal(c.unsaved)
			}
			return false
		}
		d.done = seen
	}
	return true
}

// again has all that came looked at once more.
func (d *doubts) again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = 0
}

func (c *Catalog) doubtAll(ctx context.Context) (done bool) {
	all := map[string][]approval.Candidate{}
	c.mu.Lock()
	lists, offers := maps.Clone(c.lists), maps.Clone(c.offers)
	c.mu.Unlock()
	for server, l := range lists {
		for _, e := range l.beyond() {
			if e.scanned.Orders() {
				_, infer, _ := c.configured(server)
				all[server] = append(all[server], e.candidate(infer))
			}
		}
	}
	for server, o := range offers {
		for _, one := range o.Shown() {
			if one.scanned.Orders() {
				all[server] = append(all[server], one.Candidate())
			}
		}
	}
	done = true
	for server, candidates := range all {
		done = c.doubtOf(ctx, server, candidates) && done
	}
	return done
}

// lookBeyond reads what doubts will ask for, so that who comes need not wait for
// that.
func (c *Catalog) lookBeyond() {
	c.mu.Lock()
	lists := slices.Collect(maps.Values(c.lists))
	c.mu.Unlock()
	for _, l := range lists {
		l.beyond()
	}
}

// doubtOf has those wait of a server's definitions that only the trust in it has
// accepted.
func (c *Catalog) doubtOf(ctx context.Context, server string, candidates []approval.Candidate) (done bool) {
	rules, decided, ok := c.rules(server)
	if !ok {
		return decided.Known() // else it is no server any more
	}
	candidates = slices.DeleteFunc(candidates, func(x approval.Candidate) bool { return !decided.Of(x.Kind, x.Tool).ByScan(x.Fingerprint) })
	if len(candidates) == 0 {
		return true
	}
	held, err := c.Book.Doubt(ctx, server, rules, candidates)
	if err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("what a server orders about tools of others cannot be held now", "server", server, "error", err)
		}
		return false
	}
	byKind := map[tool.Kind]*Admission{}
	for _, j := range held {
		if byKind[j.Kind] == nil {
			byKind[j.Kind] = &Admission{Server: server, Kind: j.Kind, Trust: rules.Trust}
		}
		byKind[j.Kind].Held = append(byKind[j.Kind].Held, j)
	}
	c.tell(byKind)
	return true
}
