package clients

// set takes over a text, and reports whether there is one.
func set(to *string, v *node) bool {
	s, ok := v.scalar()
	if ok {
		*to = s
	}
	return ok
}

// texts are the elements of a list. Numbers and truth values are texts, too.
func texts(v *node) ([]string, bool) {
	var out []string
	for _, item := range v.items {
		s, ok := item.scalar()
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, v.is(list)
}

// merge takes over the members of an object of texts.
func merge(to *map[string]string, v *node) bool {
	if !v.is(fileObject) {
		return false
	}
	for _, m := range v.members {
		s, ok := m.value.scalar()
		if !ok && m.value.kind != null {
			return false
		}
		if ok {
			clientfilePut(to, m.name, s)
		}
	}
	return true
}

func clientfilePut(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}
