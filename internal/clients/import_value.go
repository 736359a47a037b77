package clients

// copyScalarText copies the text of a string, number or boolean, and reports whether v is one.
func copyScalarText(to *string, v *node) bool {
	s, ok := v.scalarText()
	if ok {
		*to = s
	}
	return ok
}

// toStringList returns the elements of a list. Numbers and booleans are converted.
func toStringList(v *node) ([]string, bool) {
	var out []string
	for _, item := range v.items {
		s, ok := item.scalarText()
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, v.isKind(listNode)
}

// copyStringMembers copies the members of an object of strings into a map.
func copyStringMembers(to *map[string]string, v *node) bool {
	if !v.isKind(objectNode) {
		return false
	}
	for _, m := range v.members {
		s, ok := m.value.scalarText()
		if !ok && m.value.kind != nullNode {
			return false
		}
		if ok {
			putString(to, m.name, s)
		}
	}
	return true
}

func putString(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}
