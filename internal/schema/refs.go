package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// baseAddress is the address of a schema that says none of its own.
const baseAddress = "mcp:///schema"

// identify walks over the schema at i and those within it, and notes which
// resource each is part of, with its addresses and anchors.
func (c *compiler) identify(i int32, in *resource) error {
	if c.home[i] != nil {
		return nil
	}
	object := c.doc.values[i].kind == '{'
	if in == nil {
		in = &resource{base: baseAddress, root: i}
		if err := c.dialectOf(i, in); err != nil {
			return err
		}
		c.resources[in.base] = in
	}
	if object {
		var err error
		if in, err = c.addresses(i, in); err != nil {
			return err
		}
	}
	c.home[i] = in
	if !object {
		return nil
	}
	return c.within(i, func(sub int32) error { return c.identify(sub, in) })
}

// dialectOf reads $schema.
func (c *compiler) dialectOf(i int32, r *resource) error {
	s := c.doc.member(i, "$schema")
	if s < 0 {
		return nil
	}
	name := strings.TrimSuffix(string(c.doc.text(s)), "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://")
	switch name {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		r.dialect = draft2020
	case "json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema":
		r.dialect = draft07 // 06 is 07 with less in it
	default:
		return c.wrong(s, "the dialect %s is not known; want draft 2020-12 or 07", quoted(c.doc.text(s)))
	}
	return nil
}

// addresses reads what others may refer to the schema at i by, and gives the
// resource that it is part of.
func (c *compiler) addresses(i int32, in *resource) (*resource, error) {
	if in.dialect == draft07 && c.doc.member(i, "$ref") >= 0 {
		return in, nil
	}
	if id := c.stringMember(i, "$id"); id != "" {
		address, anchor, err := resolve(in.base, id)
		if err != nil {
			return in, c.wrong(i, "%v", err)
		}
		if in.root == i {
			in.base = address
			c.resources[address] = in
		} else if !strings.HasPrefix(id, "#") {
			in = &resource{base: address, root: i, dialect: in.dialect}
			if err := c.dialectOf(i, in); err != nil {
				return in, err
			}
			c.resources[address] = in
		}
		if in.dialect == draft07 && anchor != "" {
			in.anchor(anchor, i)
		}
	}
	if in.dialect == draft07 {
		return in, nil
	}
	if a := c.stringMember(i, "$anchor"); a != "" {
		in.anchor(a, i)
	}
	if a := c.stringMember(i, "$dynamicAnchor"); a != "" {
		in.anchor(a, i)
		if in.dynamic == nil {
			in.dynamic = make(map[string]*node)
		}
		c.home[i] = in
		in.dynamic[a] = c.node(i)
	}
	return in, nil
}

func (r *resource) anchor(name string, i int32) {
	if r.anchors == nil {
		r.anchors = make(map[string]int32)
	}
	if _, ok := r.anchors[name]; !ok {
		r.anchors[name] = i
	}
}

func (c *compiler) stringMember(i int32, name string) string {
	m := c.doc.member(i, name)
	if m < 0 || c.doc.values[m].kind != '"' {
		return ""
	}
	return string(c.doc.text(m))
}

// within calls fn for the schemas that stand directly in the one at i.
func (c *compiler) within(i int32, fn func(sub int32) error) error {
	m := c.doc.first(i)
	for range c.doc.values[i].count {
		var err error
		switch string(c.doc.name(m)) {
		case "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties",
			"additionalItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
			err = fn(m)
		case "items", "allOf", "anyOf", "oneOf", "prefixItems":
			if c.doc.values[m].kind == '[' {
				err = c.children(m, fn)
			} else {
				err = fn(m)
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			if c.doc.values[m].kind == '{' {
				err = c.children(m, fn)
			}
		}
		if err != nil {
			return err
		}
		m = c.doc.next(m)
	}
	return nil
}

func (c *compiler) children(i int32, fn func(sub int32) error) error {
	m := c.doc.first(i)
	for range c.doc.values[i].count {
		if err := fn(m); err != nil {
			return err
		}
		m = c.doc.next(m)
	}
	return nil
}

// resolve gives the address that ref means at base, and its fragment.
func resolve(base, ref string) (address, fragment string, err error) {
	if strings.HasPrefix(ref, "#") {
		fragment, err = url.PathUnescape(ref[1:])
		return base, fragment, err
	}
	from, err := url.Parse(base)
	if err != nil {
		return "", "", err
	}
	to, err := url.Parse(ref)
	if err != nil {
		return "", "", err
	}
	to = from.ResolveReference(to)
	fragment = to.Fragment
	to.Fragment, to.RawFragment = "", ""
	return to.String(), fragment, nil
}

// reference reads a $ref.
func (r *reading) reference(i int32) error {
	target, _, err := r.target(i)
	if err != nil {
		return err
	}
	r.refer(&node{at: i, resource: r.node.resource, ref: r.compiler.node(target)})
	return nil
}

// dynamicReference reads a $dynamicRef. It is dynamic only when what it refers
// to is marked so by the same name.
func (r *reading) dynamicReference(i int32) error {
	target, fragment, err := r.target(i)
	if err != nil {
		return err
	}
	r.refer(&node{at: i, resource: r.node.resource, ref: r.compiler.node(target), dynamic: r.anchorOf(target, fragment)})
	return nil
}

// refer adds a reference to the node, which may have a $ref and a $dynamicRef.
func (r *reading) refer(to *node) {
	if r.node.ref == nil {
		r.node.ref, r.node.dynamic = to.ref, to.dynamic
		return
	}
	r.node.allOf = append(r.node.allOf, to)
}

func (r *reading) anchorOf(target int32, fragment string) string {
	if home := r.home[target]; home != nil && home.dynamic[fragment] == r.nodes[target] {
		return fragment
	}
	return ""
}

// target gives the schema that the reference at i means. Nothing outside the
// document can be meant.
func (r *reading) target(i int32) (target int32, fragment string, err error) {
	if r.doc.values[i].kind != '"' {
		return 0, "", r.wrong(i, "want a reference")
	}
	ref := string(r.doc.text(i))
	address, fragment, err := resolve(r.node.resource.base, ref)
	if err != nil {
		return 0, "", r.wrong(i, "the reference %s cannot be read", quoted([]byte(ref)))
	}
	res := r.resources[address]
	if res == nil {
		return 0, "", r.wrong(i, "the reference %s leads out of the schema, and nothing is fetched", quoted([]byte(ref)))
	}
	target, ok := r.locate(res, fragment)
	if !ok {
		return 0, "", r.wrong(i, "the reference %s leads nowhere", quoted([]byte(ref)))
	}
	return target, fragment, r.identify(target, res)
}

func (c *compiler) locate(res *resource, fragment string) (int32, bool) {
	if fragment == "" {
		return res.root, true
	}
	if fragment[0] != '/' {
		i, ok := res.anchors[fragment]
		return i, ok
	}
	at := res.root
	for _, token := range strings.Split(fragment[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if c.doc.values[at].kind == '[' {
			at = c.element(at, token)
		} else {
			at = c.doc.member(at, token)
		}
		if at < 0 {
			return 0, false
		}
	}
	return at, true
}

func (c *compiler) element(i int32, token string) int32 {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n >= int(c.doc.values[i].count) {
		return -1
	}
	m := c.doc.first(i)
	for range n {
		m = c.doc.next(m)
	}
	return m
}
