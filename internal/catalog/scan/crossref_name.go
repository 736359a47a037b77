package scan

// nameKey is equal for all spellings of a name, such as send_mail, send-mail and
// sendMail: FNV-1a of its lower-case letters and digits. A collision only causes an
// unnecessary review.
type nameKey uint64

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }
func isUpperByte(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLowerByte(c byte) bool { return 'a' <= c && c <= 'z' }
func isAlnum(c byte) bool     { return isDigitByte(c) || isUpperByte(c) || isLowerByte(c) }

// isNamePartStart reports whether a part of a name begins at i.
func isNamePartStart(text []byte, i int) bool {
	switch {
	case !isNameByte(text[i]):
		return false
	case i == 0 || !isNameByte(text[i-1]):
		return true
	case isUpperByte(text[i]):
		return !isUpperByte(text[i-1]) || i+1 < len(text) && isLowerByte(text[i+1])
	}
	return false
}

// isNameByte reports whether a byte belongs to a part, not to a separator.
func isNameByte(c byte) bool { return isAlnum(c) || c >= 0x80 }

// nameKeyOf returns the key of a name.
func nameKeyOf(name []byte) nameKey { return nameKey(fnvOffset).appendName(name) }

// appendName returns the key of a name followed by another one.
func (k nameKey) appendName(name []byte) nameKey {
	for _, c := range name {
		if isNameByte(c) {
			k = (k ^ nameKey(lowerByte(c))) * fnvPrime
		}
	}
	return k
}

// countNameParts returns the number of parts of a name.
func countNameParts(name []byte) (n int) {
	for i := range name {
		if isNamePartStart(name, i) {
			n++
		}
	}
	return n
}

// appendNameKeys appends the keys under which texts may mention a tool: its name, with
// its server as prefix, and without such a prefix.
func appendNameKeys(all []nameKey, server, tool []byte) []nameKey {
	all = append(all, nameKeyOf(tool), nameKeyOf(server).appendName(tool))
	if rest := trimServerName(tool, server); countNameParts(rest) > 1 {
		all = append(all, nameKeyOf(rest))
	}
	return all
}

// trimServerName returns a name without its server as prefix, nil if it has no such
// prefix.
func trimServerName(tool, server []byte) []byte {
	i := 0
	for _, c := range server {
		if !isNameByte(c) {
			continue
		}
		for i < len(tool) && !isNameByte(tool[i]) {
			i++
		}
		if i == len(tool) || lowerByte(tool[i]) != lowerByte(c) {
			return nil
		}
		i++
	}
	if i >= len(tool) || isNameByte(tool[i]) && !isNamePartStart(tool, i) {
		return nil
	}
	return tool[i:]
}

func lowerByte(c byte) byte {
	if isUpperByte(c) {
		return c + 'a' - 'A'
	}
	return c
}

// appendSuffixKeys appends the keys of a name and of its suffixes of at least two parts,
// which a server's own texts may use.
func appendSuffixKeys(all []nameKey, name []byte) []nameKey {
	all = append(all, nameKeyOf(name))
	left := countNameParts(name)
	for i := 1; i < len(name) && left > 2; i++ {
		if isNamePartStart(name, i) {
			left--
			all = append(all, nameKeyOf(name[i:]))
		}
	}
	return all
}

// normalizedNameBytes returns a name normalized like a Passage.
func normalizedNameBytes(name string) []byte { return []byte(NormalizeName(name)) }
