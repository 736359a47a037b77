package result

import "slices"

// keyedElement is an element with its sort key.
type keyedElement struct{ key, value []byte }

// elementsWithKeys returns the elements of an array with their keys.
func (r *evaluation) elementsWithKeys(n *node, in []byte, env *variableBinding) (all []keyedElement, err error) {
	if kindName(in) != "array" {
		return nil, newDataError("%s cannot be sorted", kindName(in))
	}
	err = r.emitElements(in, func(e []byte) error {
		key := e
		if n != nil {
			var err error
			if key, err = r.collectArray(n, e, env); err != nil {
				return err
			}
		}
		all = append(all, keyedElement{key, e})
		return r.chargeOutput(64)
	})
	return all, err
}

// sortByKey sorts the elements by key. The sort is stable.
func (r *evaluation) sortByKey(n *node, in []byte, env *variableBinding) ([]keyedElement, error) {
	all, err := r.elementsWithKeys(n, in, env)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b keyedElement) int {
		order := 0
		if err == nil {
			order, err = r.compareValues(a.key, b.key, 0)
		}
		return order
	})
	return all, err
}

// buildArray builds an array of elements.
func (r *evaluation) buildArray(all []keyedElement, err error) ([]byte, error) {
	var b arrayBuilder
	for _, e := range all {
		if err == nil {
			err = b.appendElement(r, e.value)
		}
	}
	return b.finishArray(), err
}

// groupByKey builds arrays of elements with equal keys.
func (r *evaluation) groupByKey(n *node, in []byte, env *variableBinding) ([]byte, error) {
	all, err := r.sortByKey(n, in, env)
	var b arrayBuilder
	for len(all) > 0 && err == nil {
		end := 1
		for end < len(all) && err == nil {
			var order int
			if order, err = r.compareValues(all[0].key, all[end].key, 0); order != 0 {
				break
			}
			end++
		}
		var group []byte
		if group, err = r.buildArray(all[:end], err); err == nil {
			err = b.appendElement(r, group)
		}
		all = all[end:]
	}
	return b.finishArray(), err
}

func (r *evaluation) uniqueByKey(n *node, in []byte, env *variableBinding) ([]byte, error) {
	all, err := r.sortByKey(n, in, env)
	all = slices.CompactFunc(all, func(a, b keyedElement) bool {
		order := 1
		if err == nil {
			order, err = r.compareValues(a.key, b.key, 0)
		}
		return order == 0
	})
	return r.buildArray(all, err)
}

// minOrMax returns the minimum, or the maximum if sign is 1.
func (r *evaluation) minOrMax(sign int, n *node, in []byte, env *variableBinding) ([]byte, error) {
	all, err := r.elementsWithKeys(n, in, env)
	if err != nil || len(all) == 0 {
		return null, err
	}
	best := all[0]
	for _, e := range all[1:] {
		order, err := r.compareValues(e.key, best.key, 0)
		if err != nil {
			return nil, err
		}
		if order*sign > 0 || order == 0 && sign > 0 { // of equal elements, jq returns the last one as the maximum
			best = e
		}
	}
	return best.value, nil
}
