package result

import "slices"

// keyed is an element with its sort key.
type keyed struct{ key, value []byte }

// keyedBy returns the elements of an array with their keys.
func (r *run) keyedBy(n *node, in []byte, env *binding) (all []keyed, err error) {
	if kind(in) != "array" {
		return nil, failed("%s cannot be sorted", kind(in))
	}
	err = r.each(in, func(e []byte) error {
		key := e
		if n != nil {
			var err error
			if key, err = r.collect(n, e, env); err != nil {
				return err
			}
		}
		all = append(all, keyed{key, e})
		return r.countMade(64)
	})
	return all, err
}

// sorted sorts by key, stably.
func (r *run) sorted(n *node, in []byte, env *binding) ([]keyed, error) {
	all, err := r.keyedBy(n, in, env)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		order := 0
		if err == nil {
			order, err = r.compare(a.key, b.key, 0)
		}
		return order
	})
	return all, err
}

// list builds an array of elements.
func (r *run) list(all []keyed, err error) ([]byte, error) {
	var b array
	for _, e := range all {
		if err == nil {
			err = b.add(r, e.value)
		}
	}
	return b.end(), err
}

// groups builds arrays of elements with equal keys.
func (r *run) groups(n *node, in []byte, env *binding) ([]byte, error) {
	all, err := r.sorted(n, in, env)
	var b array
	for len(all) > 0 && err == nil {
		end := 1
		for end < len(all) && err == nil {
			var order int
			if order, err = r.compare(all[0].key, all[end].key, 0); order != 0 {
				break
			}
			end++
		}
		var group []byte
		if group, err = r.list(all[:end], err); err == nil {
			err = b.add(r, group)
		}
		all = all[end:]
	}
	return b.end(), err
}

func (r *run) unique(n *node, in []byte, env *binding) ([]byte, error) {
	all, err := r.sorted(n, in, env)
	all = slices.CompactFunc(all, func(a, b keyed) bool {
		order := 1
		if err == nil {
			order, err = r.compare(a.key, b.key, 0)
		}
		return order == 0
	})
	return r.list(all, err)
}

// extreme returns the minimum, or with sign 1 the maximum.
func (r *run) extreme(sign int, n *node, in []byte, env *binding) ([]byte, error) {
	all, err := r.keyedBy(n, in, env)
	if err != nil || len(all) == 0 {
		return null, err
	}
	best := all[0]
	for _, e := range all[1:] {
		order, err := r.compare(e.key, best.key, 0)
		if err != nil {
			return nil, err
		}
		if order*sign > 0 || order == 0 && sign > 0 { // of equal ones jq returns the last as the maximum
			best = e
		}
	}
	return best.value, nil
}
