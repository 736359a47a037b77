package clients

// fileOf reads servers that are named in an object of their own, or stand where a
// client's file has them, or are one alone.
func fileOf(root *node, named bool) (*ServersFile, error) {
	found, err := sectionsOf(root)
	switch {
	case named, err != nil && areServers(root):
		found = []section{{servers: root}}
	case err != nil && root.is(fileObject) && isServerNode(root):
		name := nameOf(root)
		if given := root.get("name"); given.is(text) {
			name = given.text
		}
		one := &node{kind: fileObject, at: root.at}
		one.add(fileMember{name, root.at, root})
		found = []section{{servers: one}}
	case err != nil:
		return nil, err
	}
	r := reader{file: &ServersFile{}, taken: Names{}}
	for _, s := range found {
		r.file.Client = s.client
		if err := r.section(s); err != nil {
			return nil, err
		}
	}
	return r.file, nil
}

// areServers reports whether all members of an object are servers.
func areServers(n *node) bool {
	if !n.is(fileObject) {
		return false
	}
	for _, m := range n.members {
		if !m.value.is(fileObject) || !isServerNode(m.value) {
			return false
		}
	}
	return len(n.members) > 0
}
