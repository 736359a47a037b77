package schema

import (
	"fmt"
	"strings"
)

// compiler turns the document of a schema into nodes. Schemas refer to each
// other, so nodes are made when first referred to and filled from a queue.
type compiler struct {
	doc       *document
	resources map[string]*resource // by address
	home      map[int32]*resource  // schema → the resource it is part of
	nodes     map[int32]*node
	queue     []int32
	patterns  patterns
}

// compile compiles the whole document.
func compile(doc *document) (*node, error) {
	c := &compiler{doc: doc, resources: map[string]*resource{}, home: map[int32]*resource{}, nodes: map[int32]*node{}}
	if err := c.identify(0, nil); err != nil {
		return nil, err
	}
	root := c.node(0)
	for len(c.queue) > 0 {
		i := c.queue[0]
		c.queue = c.queue[1:]
		if err := c.fill(i, c.nodes[i]); err != nil {
			return nil, err
		}
	}
	return root, c.endless()
}

// node gives the node of the schema at i, to be filled.
func (c *compiler) node(i int32) *node {
	n, ok := c.nodes[i]
	if !ok {
		n = &node{at: i, resource: c.home[i]}
		c.nodes[i] = n
		c.queue = append(c.queue, i)
	}
	return n
}

// fill reads the keywords of one schema. What is no keyword, or an annotation,
// is not looked at.
func (c *compiler) fill(i int32, n *node) error {
	switch c.doc.values[i].kind {
	case 't':
		n.verdict = valid
		return nil
	case 'f':
		n.verdict = invalid
		return nil
	case '{':
	default:
		return c.wrong(i, "a schema must be an object, true or false")
	}
	r := reading{compiler: c, node: n, draft07: n.resource.dialect == draft07}
	if ref := c.doc.member(i, "$ref"); ref >= 0 && r.draft07 {
		return r.reference(ref) // draft 07 ignores what stands beside it
	}
	m := c.doc.first(i)
	for range c.doc.values[i].count {
		if err := r.keyword(string(c.doc.name(m)), m); err != nil {
			return err
		}
		m = c.doc.next(m)
	}
	return r.done(i)
}

// wrong says what is wrong with the schema, and where.
func (c *compiler) wrong(i int32, format string, args ...any) error {
	return fmt.Errorf("at %s: %s", c.location(i), fmt.Sprintf(format, args...))
}

// location gives the JSON pointer to the value at i, as a fragment.
func (c *compiler) location(i int32) string {
	var b strings.Builder
	b.WriteByte('#')
	for at := int32(0); at != i; {
		child := c.doc.first(at)
		index := 0
		for c.doc.next(child) <= i {
			child = c.doc.next(child)
			index++
		}
		b.WriteByte('/')
		if c.doc.values[at].kind == '{' {
			writePointer(&b, c.doc.name(child))
		} else {
			fmt.Fprint(&b, index)
		}
		at = child
	}
	return b.String()
}

// writePointer writes one token of a JSON pointer.
func writePointer(b *strings.Builder, token []byte) {
	for _, c := range token {
		switch c {
		case '~':
			b.WriteString("~0")
		case '/':
			b.WriteString("~1")
		default:
			b.WriteByte(c)
		}
	}
}

// endless finds schemas that lead to themselves on the same value, so that a
// validation would never end.
func (c *compiler) endless() error {
	const open, done = 1, 2
	state := make(map[*node]int8, len(c.nodes))
	var visit func(n *node) error
	visit = func(n *node) error {
		if n == nil || state[n] == done {
			return nil
		}
		if state[n] == open {
			return c.wrong(n.at, "the schema refers to itself without end")
		}
		state[n] = open
		for _, next := range n.inPlace() {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[n] = done
		return nil
	}
	for i := range c.doc.values { // in order, so that the message is always the same
		if err := visit(c.nodes[int32(i)]); err != nil {
			return err
		}
	}
	return nil
}

// inPlace gives the schemas that n applies to the same value.
func (n *node) inPlace() []*node {
	next := []*node{n.ref, n.not, n.cond, n.then, n.els}
	next = append(append(append(next, n.allOf...), n.anyOf...), n.oneOf...)
	if n.object != nil {
		for _, d := range n.object.dependentSchemas {
			next = append(next, d.node)
		}
	}
	return next
}
