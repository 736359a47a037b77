package scan

// nameKey is the same for all spellings of a name, such as send_mail, send-mail and
// sendMail: FNV-1a of its letters and digits, made small. Two names that have one
// by accident make a definition wait that need not.
type nameKey uint64

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }
func isUpperByte(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool     { return 'a' <= c && c <= 'z' }
func isAlnum(c byte) bool     { return isDigitByte(c) || isUpperByte(c) || isLower(c) }

// begins reports whether a part of a name begins at i.
func begins(text []byte, i int) bool {
	switch {
	case !isPart(text[i]):
		return false
	case i == 0 || !isPart(text[i-1]):
		return true
	case isUpperByte(text[i]):
		return !isUpperByte(text[i-1]) || i+1 < len(text) && isLower(text[i+1])
	}
	return false
}

// isPart reports whether a byte is of a part, not between two.
func isPart(c byte) bool { return isAlnum(c) || c >= 0x80 }

// keyOf returns the key of a name.
func keyOf(name []byte) nameKey { return nameKey(fnvOffset).and(name) }

// and returns the key of a name with another one behind it.
func (k nameKey) and(name []byte) nameKey {
	for _, c := range name {
		if isPart(c) {
			k = (k ^ nameKey(lower(c))) * fnvPrime
		}
	}
	return k
}

// nameParts returns how many parts a name has.
func nameParts(name []byte) (n int) {
	for i := range name {
		if begins(name, i) {
			n++
		}
	}
	return n
}

// keys adds the keys under which others may speak of a tool: by its name, with its
// server before it, and without it when the name begins so.
func keys(all []nameKey, server, tool []byte) []nameKey {
	all = append(all, keyOf(tool), keyOf(server).and(tool))
	if rest := without(tool, server); nameParts(rest) > 1 {
		all = append(all, keyOf(rest))
	}
	return all
}

// without returns a name without the name of its server before it, nil when that
// does not stand there.
func without(tool, server []byte) []byte {
	i := 0
	for _, c := range server {
		if !isPart(c) {
			continue
		}
		for i < len(tool) && !isPart(tool[i]) {
			i++
		}
		if i == len(tool) || lower(tool[i]) != lower(c) {
			return nil
		}
		i++
	}
	if i >= len(tool) || isPart(tool[i]) && !begins(tool, i) {
		return nil
	}
	return tool[i:]
}

func lower(c byte) byte {
	if isUpperByte(c) {
		return c + 'a' - 'A'
	}
	return c
}

// ends adds the keys of a name and of its ends of two parts and more: what a server
// calls its tools in its texts, where their names have something before it.
func ends(all []nameKey, name []byte) []nameKey {
	all = append(all, keyOf(name))
	left := nameParts(name)
	for i := 1; i < len(name) && left > 2; i++ {
		if begins(name, i) {
			left--
			all = append(all, keyOf(name[i:]))
		}
	}
	return all
}

// plain returns a name as a Passage has it.
func plain(name string) []byte { return []byte(Plain(name)) }
