package clients

// readServersNode reads the servers from an object of servers, a client's file, or a single server.
func readServersNode(root *node, named bool) (*ImportedServers, error) {
	found, err := findServerSections(root)
	switch {
	case named, err != nil && allMembersAreServers(root):
		found = []serverSection{{servers: root}}
	case err != nil && root.isKind(objectNode) && isServerNode(root):
		name := deriveServerName(root)
		if given := root.memberValue("name"); given.isKind(stringNode) {
			name = given.text
		}
		one := &node{kind: objectNode, at: root.at}
		one.addMember(nodeMember{name, root.at, root})
		found = []serverSection{{servers: one}}
	case err != nil:
		return nil, err
	}
	r := importReader{file: &ImportedServers{}, taken: UsedServerNames{}}
	for _, s := range found {
		r.file.Client = s.client
		if err := r.readSection(s); err != nil {
			return nil, err
		}
	}
	return r.file, nil
}

// allMembersAreServers reports whether all members of an object are servers.
func allMembersAreServers(n *node) bool {
	if !n.isKind(objectNode) {
		return false
	}
	for _, m := range n.members {
		if !m.value.isKind(objectNode) || !isServerNode(m.value) {
			return false
		}
	}
	return len(n.members) > 0
}
