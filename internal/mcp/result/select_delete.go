package result

import "mcpproxy/internal/mcp/wirejson"

// evalDel implements del: it removes the values at paths that consist of .name, [n] and [].
func evalDel(c call) error {
	v := c.in
	var remove func(n *node) error
	remove = func(n *node) error {
		if n.op == opComma {
			if err := remove(n.a); err != nil {
				return err
			}
			return remove(n.b)
		}
		steps, ok := toDelSteps(n)
		if !ok {
			return newDataError("del accepts only paths of names and []")
		}
		var err error
		v, err = c.deletePath(v, steps)
		return err
	}
	err := remove(c.args[0])
	return c.emit(v, err)
}

// delStep is a step of a del path: a name, or nil for every element. An optional step ignores values of other kinds.
type delStep struct {
	name     []byte
	optional bool
}

// toDelSteps returns the steps of an expression if it is a path.
func toDelSteps(n *node) ([]delStep, bool) {
	last := delStep{optional: n.optional}
	switch {
	case n.op == opSame:
		return nil, true
	case n.op == opPipe:
		before, one := toDelSteps(n.a)
		after, two := toDelSteps(n.b)
		return append(before, after...), one && two
	case n.op == opIndex && n.b.op == opLiteral && wirejson.Kind(n.b.value) == '"':
		last.name = n.b.value
	case n.op == opEach:
	default:
		return nil, false
	}
	before, ok := toDelSteps(n.a)
	return append(before, last), ok
}

// deletePath removes the value at a path, if it exists.
func (r *evaluation) deletePath(v []byte, steps []delStep) ([]byte, error) {
	if err := r.chargeWork(len(v)); err != nil {
		return nil, err
	}
	last := len(steps) == 1
	switch k := kindName(v); {
	case len(steps) == 0:
		return null, nil
	case k == "null" && steps[0].name != nil:
		return v, nil
	case k != "object" && (k != "array" || steps[0].name != nil):
		if steps[0].optional {
			return v, nil
		}
		return nil, newDataError("%s has no members", k)
	case k == "object":
		all, err := r.appendMembers(nil, v)
		if err != nil {
			return nil, err
		}
		kept := all[:0]
		for _, m := range all {
			if hit := steps[0].name == nil || equalJSONStrings(m[0], steps[0].name); hit && last {
				continue
			} else if hit {
				if m[1], err = r.deletePath(m[1], steps[1:]); err != nil {
					return nil, err
				}
			}
			kept = append(kept, m)
		}
		return r.buildObject(kept)
	}
	var b arrayBuilder
	return b.finishArrayWith(r.emitElements(v, func(e []byte) error {
		if last {
			return nil
		}
		e, err := r.deletePath(e, steps[1:])
		if err != nil {
			return err
		}
		return b.appendElement(r, e)
	}))
}
