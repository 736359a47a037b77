package clients

// readServersFile reads servers from an object of servers, a client's file, or a single
// server.
func readServersFile(root *node, named bool) (*ServersFile, error) {
	found, err := findSections(root)
	switch {
	case named, err != nil && areServers(root):
		found = []serverSection{{servers: root}}
	case err != nil && root.is(objectNode) && isServerNode(root):
		name := nameFor(root)
		if given := root.get("name"); given.is(stringNode) {
			name = given.text
		}
		one := &node{kind: objectNode, at: root.at}
		one.add(nodeMember{name, root.at, root})
		found = []serverSection{{servers: one}}
	case err != nil:
		return nil, err
	}
	r := importReader{file: &ServersFile{}, taken: ServerNames{}}
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
	if !n.is(objectNode) {
		return false
	}
	for _, m := range n.members {
		if !m.value.is(objectNode) || !isServerNode(m.value) {
			return false
		}
	}
	return len(n.members) > 0
}
