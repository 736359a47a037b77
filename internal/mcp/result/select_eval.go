package result

import "errors"

// eval evaluates a node on a value and emits the results.
func (r *run) eval(n *node, in []byte, env *binding, out emit) error {
	if err := r.countRead(0); err != nil {
		return err
	}
	switch n.op {
	case opSame:
		return out(in)
	case opLiteral:
		return out(n.value)
	case opVariable:
		return out(env.find(n.name))
	case opIndex:
		if n.b.op == opLiteral { // the most frequent case
			return r.at(n, n.b.value, in, env, out)
		}
		return r.eval(n.b, in, env, func(at []byte) error { return r.at(n, at, in, env, out) })
	case opSlice:
		return r.sliced(n, in, env, out)
	case opEach:
		return r.eval(n.a, in, env, func(of []byte) error {
			if k := kind(of); n.optional && k != "array" && k != "object" {
				return nil
			}
			return r.each(of, out)
		})
	case opTry:
		return r.try(n, in, env, out)
	case opPipe:
		return r.eval(n.a, in, env, func(v []byte) error { return r.eval(n.b, v, env, out) })
	case opBind:
		return r.eval(n.a, in, env, func(v []byte) error {
			if err := r.countMade(64); err != nil {
				return err
			}
			return r.eval(n.b, in, &binding{n.name, v, env}, out)
		})
	case opComma:
		if err := r.eval(n.a, in, env, out); err != nil {
			return err
		}
		return r.eval(n.b, in, env, out)
	case opAlternative:
		return r.alternative(n, in, env, out)
	case opOr, opAnd:
		return r.eval(n.a, in, env, func(a []byte) error {
			if truthy(a) == (n.op == opOr) {
				return out(boolean(n.op == opOr))
			}
			return r.eval(n.b, in, env, func(b []byte) error { return out(boolean(truthy(b))) })
		})
	case opCompare, opArithmetic: // the right side first, as jq does
		return r.eval(n.b, in, env, func(b []byte) error {
			return r.eval(n.a, in, env, func(a []byte) error {
				v, err := r.operate(n.name, a, b)
				if err != nil {
					return err
				}
				return out(v)
			})
		})
	case opNegative:
		return r.eval(n.a, in, env, func(v []byte) error {
			if kind(v) != "number" {
				return failed("%s cannot be negated", kind(v))
			}
			return out(subtract([]byte("0"), v))
		})
	case opArray:
		v, err := r.collect(n.a, in, env)
		if err != nil {
			return err
		}
		return out(v)
	case opObject:
		return r.object(n.list, make([][2][]byte, 0, len(n.list)/2), in, env, out)
	case opText:
		return r.textOf(n.list, nil, in, env, out)
	case opIf:
		return r.eval(n.a, in, env, func(v []byte) error {
			if truthy(v) {
				return r.eval(n.b, in, env, out)
			}
			return r.eval(n.c, in, env, out)
		})
	case opCall:
		return n.call.run(r, n.list, in, env, out)
	}
	return errors.New("an operation that is not known")
}

// at emits the value at a name or index.
func (r *run) at(n *node, at, in []byte, env *binding, out emit) error {
	if n.a.op == opSame {
		v, err := r.index(in, at)
		return n.emitOptional(v, err, out)
	}
	return r.eval(n.a, in, env, func(of []byte) error {
		v, err := r.index(of, at)
		return n.emitOptional(v, err, out)
	})
}

// emitOptional emits a value or returns its error, which an optional node ignores.
func (n *node) emitOptional(v []byte, err error, out emit) error {
	if err == nil {
		return out(v)
	}
	if _, of := errors.AsType[*dataError](err); of && n.optional {
		return nil
	}
	return err
}

func (r *run) sliced(n *node, in []byte, env *binding, out emit) error {
	bound := func(b *node, fn func(at int, given bool) error) error {
		if b == nil {
			return fn(0, false)
		}
		return r.eval(b, in, env, func(v []byte) error {
			if string(v) == "null" {
				return fn(0, false)
			}
			i, ok := wholeOf(v)
			if !ok {
				return failed("the bounds of a part must be numbers")
			}
			return fn(i, true)
		})
	}
	return bound(n.c, func(to int, hasTo bool) error {
		return bound(n.b, func(from int, _ bool) error {
			return r.eval(n.a, in, env, func(of []byte) error {
				v, err := r.part(of, from, to, hasTo)
				return n.emitOptional(v, err, out)
			})
		})
	})
}

func (r *run) collect(n *node, in []byte, env *binding) ([]byte, error) {
	var b array
	err := r.eval(n, in, env, func(v []byte) error { return b.add(r, v) })
	return b.end(), err
}

// try emits the values of a up to its first error; errors of out are not caught.
func (r *run) try(n *node, in []byte, env *binding, out emit) error {
	var beyond error
	err := r.eval(n.a, in, env, func(v []byte) error {
		beyond = out(v)
		return beyond
	})
	wrong, of := errors.AsType[*dataError](err)
	switch {
	case beyond != nil || !of:
		return err
	case n.b == nil:
		return nil
	}
	message, err := r.text(wrong.what)
	if err != nil {
		return err
	}
	return r.eval(n.b, message, env, out)
}

// alternative emits the truthy values of a; if there are none, the values of b.
func (r *run) alternative(n *node, in []byte, env *binding, out emit) error {
	var beyond error
	found := false
	err := r.eval(n.a, in, env, func(v []byte) error {
		if !truthy(v) {
			return nil
		}
		found = true
		beyond = out(v)
		return beyond
	})
	if _, of := errors.AsType[*dataError](err); beyond != nil || err != nil && !of {
		return err
	}
	if found {
		return nil
	}
	return r.eval(n.b, in, env, out)
}

// object emits an object for each combination of names and values. made has room for all; each combination
// is emitted before the next one overwrites it.
func (r *run) object(list []*node, made [][2][]byte, in []byte, env *binding, out emit) error {
	if len(list) == 0 {
		v, err := r.objectOf(made)
		if err != nil {
			return err
		}
		return out(v)
	}
	return r.eval(list[0], in, env, func(name []byte) error {
		return r.eval(list[1], in, env, func(v []byte) error {
			if kind(name) != "string" {
				return failed("%s is no name of a member", kind(name))
			}
			return r.object(list[2:], append(made, [2][]byte{name, v}), in, env, out)
		})
	})
}

// textOf emits a string for each combination of its parts. Each is emitted before the next one overwrites
// it.
func (r *run) textOf(parts []*node, made []byte, in []byte, env *binding, out emit) error {
	if len(parts) == 0 {
		if err := r.countMade(len(made) + 2); err != nil {
			return err
		}
		return out(append(append(append(make([]byte, 0, len(made)+2), '"'), made...), '"'))
	}
	return r.eval(parts[0], in, env, func(v []byte) error {
		s, err := r.stringOf(v)
		if err != nil {
			return err
		}
		if err := r.countMade(len(s)); err != nil {
			return err
		}
		return r.textOf(parts[1:], append(made, s[1:len(s)-1]...), in, env, out)
	})
}
