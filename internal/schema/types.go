package schema

import (
	"bytes"
	"unicode/utf8"
)

func (r *run) checkNumber(rules *numberRules, v int32) bool {
	n := parseNumber(r.doc.raw(v))
	ok := true
	limit := func(bound *number, wrong bool, what string) {
		if wrong && r.goOn(ok) {
			ok = r.fail(v, "must be %s %s", what, bound)
		}
	}
	if b := rules.minimum; b != nil {
		limit(b, n.compare(b) < 0, "at least")
	}
	if b := rules.maximum; b != nil {
		limit(b, n.compare(b) > 0, "at most")
	}
	if b := rules.above; b != nil {
		limit(b, n.compare(b) <= 0, "more than")
	}
	if b := rules.below; b != nil {
		limit(b, n.compare(b) >= 0, "less than")
	}
	if b := rules.multipleOf; b != nil {
		if !r.spend(1 + len(n.digits)/8) {
			return false
		}
		limit(b, !n.multipleOf(b), "a multiple of")
	}
	return ok
}

func (r *run) checkString(rules *stringRules, v int32) bool {
	text := r.doc.text(v)
	ok := r.checkLength(rules.length, text, v)
	if p := rules.pattern; p != nil && r.goOn(ok) {
		ok = r.matches(p, text, v, "must match the pattern %s") && ok
	}
	return ok && !r.over
}

// checkLength counts characters only when the bytes leave it open.
func (r *run) checkLength(length counts, text []byte, v int32) bool {
	if len(text)/utf8.UTFMax >= length.least && (length.most < 0 || len(text) <= length.most) {
		return true
	}
	if !r.spend(1 + len(text)/64) {
		return false
	}
	n := utf8.RuneCount(text)
	if n < length.least {
		return r.fail(v, "must have at least %s, but has %d", plural(length.least, "character"), n)
	}
	if length.most >= 0 && n > length.most {
		return r.fail(v, "must have at most %s, but has %d", plural(length.most, "character"), n)
	}
	return true
}

// matches matches a pattern, whose cost is the program's size times the
// text's at worst.
func (r *run) matches(p *pattern, text []byte, v int32, message string) bool {
	if !r.spend(1 + p.size*len(text)/16) {
		return false
	}
	if p.re.Match(text) {
		return true
	}
	return message != "" && r.fail(v, message, quoted([]byte(p.text)))
}

func (r *run) checkObject(o *objectRules, v int32, ev *evaluated) bool {
	ok := r.checkCount(o.size, v, "property", "properties")
	if r.goOn(ok) {
		ok = r.required(o.required, v) && ok
	}
	if r.goOn(ok) && (o.properties != nil || o.patterns != nil || o.additional != nil || o.names != nil) {
		ok = r.members(o, v, ev) && ok
	}
	for i := range o.dependentRequired {
		if d := &o.dependentRequired[i]; r.goOn(ok) && r.has(v, d.name) {
			ok = r.required(d.needs, v) && ok
		}
	}
	for i := range o.dependentSchemas {
		if d := &o.dependentSchemas[i]; r.goOn(ok) && r.has(v, d.name) {
			ok = r.check(d.node, v, ev) && ok
		}
	}
	return ok && !r.over
}

func (r *run) checkCount(size counts, v int32, one, many string) bool {
	n := int(r.doc.values[v].count)
	name := func(n int) string {
		if n == 1 {
			return one
		}
		return many
	}
	if n < size.least {
		return r.fail(v, "must have at least %d %s, but has %d", size.least, name(size.least), n)
	}
	if size.most >= 0 && n > size.most {
		return r.fail(v, "must have at most %d %s, but has %d", size.most, name(size.most), n)
	}
	return true
}

func (r *run) has(v int32, name string) bool {
	return r.spend(1+int(r.doc.values[v].count)/16) && r.doc.member(v, name) >= 0
}

func (r *run) required(names []string, v int32) bool {
	ok := true
	for _, name := range names {
		if !r.goOn(ok) {
			break
		}
		if !r.spend(int(r.doc.values[v].count) / 16) {
			return false
		}
		if r.doc.member(v, name) < 0 {
			ok = r.fail(v, "missing property %s", quoted([]byte(name)))
		}
	}
	return ok
}

// members checks every member by what is said of its name.
func (r *run) members(o *objectRules, v int32, ev *evaluated) bool {
	ok := true
	m := r.doc.first(v)
	for i := range int(r.doc.values[v].count) {
		if !r.goOn(ok) || !r.spend(1) {
			break
		}
		ok = r.member(o, v, m, i, ev) && ok
		m = r.doc.next(m)
	}
	return ok && !r.over
}

func (r *run) member(o *objectRules, v, m int32, ordinal int, ev *evaluated) bool {
	ok, known := true, false
	name := r.doc.name(m)
	if n := o.properties[string(name)]; n != nil {
		known = true
		ok = r.inside(n, m)
	}
	for i := range o.patterns {
		if p := &o.patterns[i]; r.goOn(ok) && r.matches(p.pattern, name, v, "") {
			known = true
			ok = r.inside(p.node, m) && ok
		}
	}
	if !known && o.additional != nil && r.goOn(ok) {
		known = true
		if o.additional.verdict == invalid {
			ok = r.fail(v, "property %s is not allowed", quoted(name))
		} else {
			ok = r.inside(o.additional, m)
		}
	}
	if known {
		ev.note(ordinal, int(r.doc.values[v].count))
	}
	if o.names != nil && r.goOn(ok) {
		ok = r.checkName(o.names, v, m) && ok
	}
	return ok
}

// checkName checks the name of a member as a string of its own.
func (r *run) checkName(n *node, v, m int32) bool {
	member := r.doc.values[m]
	r.doc.values = append(r.doc.values, value{kind: '"', escaped: member.keyEscaped, start: member.key, end: member.keyEnd, size: 1})
	name := int32(len(r.doc.values) - 1)
	ok := r.quietly(n, name, nil)
	r.doc.values = r.doc.values[:name]
	return ok || r.fail(v, "%s cannot be the name of a property here", quoted(r.doc.name(m)))
}

func (r *run) checkArray(a *arrayRules, v int32, ev *evaluated) bool {
	ok := r.checkCount(a.size, v, "element", "elements")
	if a.unique && r.goOn(ok) {
		ok = r.checkUnique(v) && ok
	}
	if r.goOn(ok) && (a.items != nil || a.prefix != nil) {
		ok = r.elements(a, v, ev) && ok
	}
	if a.contains != nil && r.goOn(ok) {
		ok = r.checkContains(a, v, ev) && ok
	}
	return ok && !r.over
}

func (r *run) elements(a *arrayRules, v int32, ev *evaluated) bool {
	ok := true
	count := int(r.doc.values[v].count)
	m := r.doc.first(v)
	for i := range count {
		n := a.items
		if i < len(a.prefix) {
			n = a.prefix[i]
		}
		if n == nil || !r.goOn(ok) || !r.spend(1) {
			break
		}
		ok = r.inside(n, m) && ok
		ev.note(i, count)
		m = r.doc.next(m)
	}
	return ok && !r.over
}

func (r *run) checkContains(a *arrayRules, v int32, ev *evaluated) bool {
	found := 0
	count := int(r.doc.values[v].count)
	m := r.doc.first(v)
	for i := range count {
		if r.quietly(a.contains, m, nil) {
			found++
			ev.note(i, count)
		}
		if r.over {
			return false
		}
		m = r.doc.next(m)
	}
	if found < a.matches.least {
		return r.fail(v, "must contain at least %s that fit, but has %d", plural(a.matches.least, "element"), found)
	}
	if a.matches.most >= 0 && found > a.matches.most {
		return r.fail(v, "must contain at most %s that fit, but has %d", plural(a.matches.most, "element"), found)
	}
	return true
}

// evaluated notes which members or elements of a value some schema looked at.
type evaluated struct{ seen []bool }

func (ev *evaluated) note(i, count int) {
	if ev == nil {
		return
	}
	if ev.seen == nil {
		ev.seen = make([]bool, count)
	}
	ev.seen[i] = true
}

func (ev *evaluated) merge(other *evaluated) {
	for i, seen := range other.seen {
		if seen {
			ev.note(i, len(other.seen))
		}
	}
}

// leftOver checks what no other keyword looked at.
func (r *run) leftOver(n *node, v int32, ev *evaluated) bool {
	var rule *node
	switch kind := r.doc.values[v].kind; {
	case kind == '{' && n.object != nil:
		rule = n.object.unevaluated
	case kind == '[' && n.array != nil:
		rule = n.array.unevaluated
	}
	if rule == nil {
		return true
	}
	ok := true
	count := int(r.doc.values[v].count)
	m := r.doc.first(v)
	for i := range count {
		if !r.goOn(ok) || !r.spend(1) {
			break
		}
		if ev.seen == nil || !ev.seen[i] {
			ok = r.checkLeft(rule, v, m, i) && ok
			ev.note(i, count)
		}
		m = r.doc.next(m)
	}
	return ok && !r.over
}

func (r *run) checkLeft(rule *node, v, m int32, ordinal int) bool {
	if rule.verdict != invalid {
		return r.inside(rule, m)
	}
	if r.doc.values[v].kind == '{' {
		return r.fail(v, "property %s is not allowed", quoted(r.doc.name(m)))
	}
	return r.fail(v, "element %d is not allowed", ordinal)
}

// equalConstant compares a value with one of the schema's.
func (r *run) equalConstant(v, constant int32) bool {
	return r.equal(&r.doc, v, r.schema, constant)
}

func (r *run) inEnum(e *enum, v int32) bool {
	if r.doc.values[v].kind == '"' {
		_, ok := e.strings[string(r.doc.text(v))]
		return ok
	}
	for _, c := range e.others {
		if !r.spend(1) {
			return false
		}
		if r.equalConstant(v, c) {
			return true
		}
	}
	return false
}

// equal compares two values as JSON Schema does: numbers by value, objects
// whatever the order of their members.
func (r *run) equal(a *document, i int32, b *document, j int32) bool {
	x, y := &a.values[i], &b.values[j]
	if x.kind != y.kind || x.count != y.count {
		return false
	}
	switch x.kind {
	case '"':
		return r.spend(1+(len(a.raw(i))+len(b.raw(j)))/128) && bytes.Equal(a.text(i), b.text(j))
	case 0:
		if !r.spend(1 + (len(a.raw(i))+len(b.raw(j)))/16) {
			return false
		}
		m, n := parseNumber(a.raw(i)), parseNumber(b.raw(j))
		return m.compare(&n) == 0
	case '[':
		p, q := a.first(i), b.first(j)
		for range x.count {
			if !r.spend(1) || !r.equal(a, p, b, q) {
				return false
			}
			p, q = a.next(p), b.next(q)
		}
	case '{':
		p := a.first(i)
		for range x.count {
			q := int32(-1)
			if r.spend(1 + int(y.count)/16) {
				q = b.member(j, string(a.name(p)))
			}
			if q < 0 || !r.equal(a, p, b, q) {
				return false
			}
			p = a.next(p)
		}
	}
	return true
}
