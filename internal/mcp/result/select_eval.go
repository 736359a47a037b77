package result

import "errors"

// evalNode evaluates a node on a value and emits the results.
func (r *evaluation) evalNode(n *node, in []byte, env *variableBinding, out emitFunc) error {
	if err := r.chargeWork(0); err != nil {
		return err
	}
	switch n.op {
	case opSame:
		return out(in)
	case opLiteral:
		return out(n.value)
	case opVariable:
		return out(env.lookUpValue(n.name))
	case opIndex:
		if n.b.op == opLiteral { // the most common case
			return r.evalIndex(n, n.b.value, in, env, out)
		}
		return r.evalNode(n.b, in, env, func(at []byte) error { return r.evalIndex(n, at, in, env, out) })
	case opSlice:
		return r.evalSlice(n, in, env, out)
	case opEach:
		return r.evalNode(n.a, in, env, func(of []byte) error {
			if k := kindName(of); n.optional && k != "array" && k != "object" {
				return nil
			}
			return r.emitElements(of, out)
		})
	case opTry:
		return r.evalTry(n, in, env, out)
	case opPipe:
		return r.evalNode(n.a, in, env, func(v []byte) error { return r.evalNode(n.b, v, env, out) })
	case opBind:
		return r.evalNode(n.a, in, env, func(v []byte) error {
			if err := r.chargeOutput(64); err != nil {
				return err
			}
			return r.evalNode(n.b, in, &variableBinding{n.name, v, env}, out)
		})
	case opComma:
		if err := r.evalNode(n.a, in, env, out); err != nil {
			return err
		}
		return r.evalNode(n.b, in, env, out)
	case opAlternative:
		return r.evalAlternative(n, in, env, out)
	case opOr, opAnd:
		return r.evalNode(n.a, in, env, func(a []byte) error {
			if isTruthy(a) == (n.op == opOr) {
				return out(boolJSON(n.op == opOr))
			}
			return r.evalNode(n.b, in, env, func(b []byte) error { return out(boolJSON(isTruthy(b))) })
		})
	case opCompare, opArithmetic: // the right side first, as in jq
		return r.evalNode(n.b, in, env, func(b []byte) error {
			return r.evalNode(n.a, in, env, func(a []byte) error {
				v, err := r.applyOperator(n.name, a, b)
				if err != nil {
					return err
				}
				return out(v)
			})
		})
	case opNegative:
		return r.evalNode(n.a, in, env, func(v []byte) error {
			if kindName(v) != "number" {
				return newDataError("%s cannot be negated", kindName(v))
			}
			return out(subtractNumbers([]byte("0"), v))
		})
	case opArray:
		v, err := r.collectArray(n.a, in, env)
		if err != nil {
			return err
		}
		return out(v)
	case opObject:
		return r.evalObject(n.list, make([][2][]byte, 0, len(n.list)/2), in, env, out)
	case opText:
		return r.evalString(n.list, nil, in, env, out)
	case opIf:
		return r.evalNode(n.a, in, env, func(v []byte) error {
			if isTruthy(v) {
				return r.evalNode(n.b, in, env, out)
			}
			return r.evalNode(n.c, in, env, out)
		})
	case opCall:
		return n.call(call{r, n.list, in, env, out})
	}
	return errors.New("an unknown operation")
}

// evalIndex emits the value at a name or index.
func (r *evaluation) evalIndex(n *node, at, in []byte, env *variableBinding, out emitFunc) error {
	if n.a.op == opSame {
		v, err := r.valueAt(in, at)
		return n.emitOptional(v, err, out)
	}
	return r.evalNode(n.a, in, env, func(of []byte) error {
		v, err := r.valueAt(of, at)
		return n.emitOptional(v, err, out)
	})
}

// emitOptional emits a value or returns its error. An optional node ignores the error.
func (n *node) emitOptional(v []byte, err error, out emitFunc) error {
	if err == nil {
		return out(v)
	}
	if _, of := errors.AsType[*dataError](err); of && n.optional {
		return nil
	}
	return err
}

func (r *evaluation) evalSlice(n *node, in []byte, env *variableBinding, out emitFunc) error {
	bound := func(b *node, fn func(at int, given bool) error) error {
		if b == nil {
			return fn(0, false)
		}
		return r.evalNode(b, in, env, func(v []byte) error {
			if string(v) == "null" {
				return fn(0, false)
			}
			i, ok := toIndex(v)
			if !ok {
				return newDataError("the bounds of a part must be numbers")
			}
			return fn(i, true)
		})
	}
	return bound(n.c, func(to int, hasTo bool) error {
		return bound(n.b, func(from int, _ bool) error {
			return r.evalNode(n.a, in, env, func(of []byte) error {
				v, err := r.sliceValue(of, from, to, hasTo)
				return n.emitOptional(v, err, out)
			})
		})
	})
}

func (r *evaluation) collectArray(n *node, in []byte, env *variableBinding) ([]byte, error) {
	var b arrayBuilder
	err := r.evalNode(n, in, env, func(v []byte) error { return b.appendElement(r, v) })
	return b.finishArray(), err
}

// evalTry emits the values of a up to its first error. It does not catch errors of out.
func (r *evaluation) evalTry(n *node, in []byte, env *variableBinding, out emitFunc) error {
	var beyond error
	err := r.evalNode(n.a, in, env, func(v []byte) error {
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
	message, err := r.newStringJSON(wrong.what)
	if err != nil {
		return err
	}
	return r.evalNode(n.b, message, env, out)
}

// evalAlternative emits the truthy values of a, or the values of b if there are none.
func (r *evaluation) evalAlternative(n *node, in []byte, env *variableBinding, out emitFunc) error {
	var beyond error
	found := false
	err := r.evalNode(n.a, in, env, func(v []byte) error {
		if !isTruthy(v) {
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
	return r.evalNode(n.b, in, env, out)
}

// evalObject emits an object for each combination of names and values. made has room for all members. Each combination
// is emitted before the next one overwrites it.
func (r *evaluation) evalObject(list []*node, made [][2][]byte, in []byte, env *variableBinding, out emitFunc) error {
	if len(list) == 0 {
		v, err := r.buildObject(made)
		if err != nil {
			return err
		}
		return out(v)
	}
	return r.evalNode(list[0], in, env, func(name []byte) error {
		return r.evalNode(list[1], in, env, func(v []byte) error {
			if kindName(name) != "string" {
				return newDataError("%s is not a member name", kindName(name))
			}
			return r.evalObject(list[2:], append(made, [2][]byte{name, v}), in, env, out)
		})
	})
}

// evalString emits a string for each combination of its parts. Each string is emitted before the next one overwrites
// it.
func (r *evaluation) evalString(parts []*node, made []byte, in []byte, env *variableBinding, out emitFunc) error {
	if len(parts) == 0 {
		if err := r.chargeOutput(len(made) + 2); err != nil {
			return err
		}
		return out(append(append(append(make([]byte, 0, len(made)+2), '"'), made...), '"'))
	}
	return r.evalNode(parts[0], in, env, func(v []byte) error {
		s, err := r.toStringJSON(v)
		if err != nil {
			return err
		}
		if err := r.chargeOutput(len(s)); err != nil {
			return err
		}
		return r.evalString(parts[1:], append(made, s[1:len(s)-1]...), in, env, out)
	})
}
