package result

import "slices"

// keyedElement is an element with its sort key.
type keyedElement struct{ key, value []byte }

// elementsWithKeys returns the elements of the input with their keys: the values of n, or the elements if n is nil.
func (c call) elementsWithKeys(n *node) (all []keyedElement, err error) {
	if kindName(c.in) != "array" {
		return nil, newDataError("%s cannot be sorted", kindName(c.in))
	}
	err = c.emitElements(c.in, func(e []byte) error {
		key := e
		if n != nil {
			var err error
			if key, err = c.collectArray(n, e, c.env); err != nil {
				return err
			}
		}
		all = append(all, keyedElement{key, e})
		return c.chargeOutput(64)
	})
	return all, err
}

// sortByKey sorts the elements by key. The sort is stable.
func (c call) sortByKey(n *node) ([]keyedElement, error) {
	all, err := c.elementsWithKeys(n)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b keyedElement) int {
		order := 0
		if err == nil {
			order, err = c.compareValues(a.key, b.key, 0)
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
func (c call) groupByKey(n *node) ([]byte, error) {
	all, err := c.sortByKey(n)
	var b arrayBuilder
	for len(all) > 0 && err == nil {
		end := 1
		for end < len(all) && err == nil {
			var order int
			if order, err = c.compareValues(all[0].key, all[end].key, 0); order != 0 {
				break
			}
			end++
		}
		var group []byte
		if group, err = c.buildArray(all[:end], err); err == nil {
			err = b.appendElement(c.evaluation, group)
		}
		all = all[end:]
	}
	return b.finishArray(), err
}

func (c call) uniqueByKey(n *node) ([]byte, error) {
	all, err := c.sortByKey(n)
	all = slices.CompactFunc(all, func(a, b keyedElement) bool {
		order := 1
		if err == nil {
			order, err = c.compareValues(a.key, b.key, 0)
		}
		return order == 0
	})
	return c.buildArray(all, err)
}

// minOrMax returns the minimum, or the maximum if sign is 1.
func (c call) minOrMax(sign int, n *node) ([]byte, error) {
	all, err := c.elementsWithKeys(n)
	if err != nil || len(all) == 0 {
		return null, err
	}
	best := all[0]
	for _, e := range all[1:] {
		order, err := c.compareValues(e.key, best.key, 0)
		if err != nil {
			return nil, err
		}
		if order*sign > 0 || order == 0 && sign > 0 { // of equal elements, jq returns the last one as the maximum
			best = e
		}
	}
	return best.value, nil
}
