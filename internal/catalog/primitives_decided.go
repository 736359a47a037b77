package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"net/url"
	"path"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

func (o *ServerPrimitives) withDecisions(decided *approval.ServerView) *DecidedPrimitives {
	v := &DecidedPrimitives{decided: decided, counts: map[tool.DefinitionKind]PrimitiveCount{}, pendingURIs: map[string]bool{}}
	sum, decidedAny := sha256.New(), o.epoch > 0
	sum.Write(binary.BigEndian.AppendUint64(nil, o.epoch)) // writing to a hash does not fail
	look := func(one *Primitive) {
		ok := isPrimitiveApproved(decided, one)
		if !one.removed {
			n := v.counts[one.Kind]
			n.Total++
			if block := decided.DecisionsOn(one.Kind, one.Name).Block; block != nil && block.Fingerprint == one.Fingerprint { // it waits for no one
				n.Blocked++
			} else if !ok {
				n.Waiting++
			}
			v.counts[one.Kind] = n
		}
		switch {
		case one.Kind == tool.KindTemplate && ok:
			v.approvedTemplates = append(v.approvedTemplates, one.Name)
		case one.Kind == tool.KindTemplate:
			v.pendingTemplates = append(v.pendingTemplates, one.Name)
		case one.Kind == tool.KindResource && !ok:
			v.pendingURIs[normalizeURI(one.Name)] = true
		}
		if by := decided.DecisionsOn(one.Kind, one.Name); by.Block != nil || by.Pin != nil && by.Pin.ByUser() {
			decidedAny = true
			sum.Write([]byte(one.Kind + "\x00" + tool.DefinitionKind(one.Name)))
			if ok {
				sum.Write(one.Fingerprint[:])
			}
		}
	}
	for _, kind := range tool.PrimitiveKinds() {
		for _, one := range o.Listed(kind) {
			look(one)
			if _, err := tool.StrictForm(kind, one.Raw); err != nil {
				v.leftOut.addMalformed(kind, one.Name, err)
			}
		}
		for _, err := range o.listOrEmpty(kind).unusable {
			v.leftOut.add(err.Error())
		}
	}
	for _, one := range o.unlisted {
		look(one)
	}
	if decidedAny {
		sum.Sum(v.decisionsHash[:0])
	}
	return v
}

// isApproved reports whether exactly this primitive is approved.
func (v *DecidedPrimitives) isApproved(o *Primitive) bool { return isPrimitiveApproved(v.decided, o) }

// Counts returns the number of primitives by kind, without empty kinds.
func (v *DecidedPrimitives) Counts() map[tool.DefinitionKind]PrimitiveCount { return v.counts }

// DecisionsHash changes when a decision about a primitive changes.
func (v *DecidedPrimitives) DecisionsHash() [sha256.Size]byte { return v.decisionsHash }

// primitiveUseStatus returns the status for a use that a client requests. An unlisted resource is callable unless a
// user has rejected it, because clients follow links to resources that are on no list. An unlisted prompt needs an
// approval, because a server may list it only in clients' sessions.
func (c *Catalog) primitiveUseStatus(server string, kind tool.DefinitionKind, name string) policy.ToolStatus {
	o, decided := c.Primitives(server), c.Approvals.ServerView(server)
	if one := o.listOrEmpty(kind).byName[name]; one != nil {
		return c.PrimitiveStatus(server, one)
	}
	if one := o.findUnlisted(kind, name); one != nil {
		return c.PrimitiveStatus(server, one)
	}
	free := decided.DecisionsOn(kind, name).Block == nil
	if kind == tool.KindPrompt && o.hasList(kind) {
		rules, _, _ := c.admissionRules(server)
		free = free && (rules.Trust == approval.Auto || decided.DecisionsOn(kind, name).Pin != nil)
	}
	if kind == tool.KindResource && free {
		v := c.CurrentPrimitives(server)
		free = !v.pendingURIs[normalizeURI(name)] && v.isUnlistedURIAllowed(name)
	}
	return c.primitiveStatusGivenApproval(server, free)
}

// isUnlistedURIAllowed reports whether an unlisted URI may be read. If templates match it, one of
// them must be approved.
func (v *DecidedPrimitives) isUnlistedURIAllowed(uri string) bool {
	fits := func(templates []string) bool {
		for _, t := range templates {
			if tool.MatchesTemplate(t, uri) || tool.MatchesTemplate(normalizeURI(t), normalizeURI(uri)) {
				return true
			}
		}
		return false
	}
	return fits(v.approvedTemplates) || !fits(v.pendingTemplates)
}

// normalizeURI returns the same spelling for all URIs that a server may treat as equal: case, escapes, dots, query and
// fragment make no difference.
func normalizeURI(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	for range 3 { // escapes may be escaped
		plain, err := url.PathUnescape(uri)
		if err != nil || plain == uri {
			break
		}
		uri = plain
	}
	scheme, rest, ok := strings.Cut(strings.ToLower(uri), ":")
	if !ok {
		return path.Clean(scheme)
	}
	return scheme + ":" + path.Clean("/"+strings.TrimSpace(rest))
}
