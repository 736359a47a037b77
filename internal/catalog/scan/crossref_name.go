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

// beginsNamePart reports whether a part of a name begins at i.
func beginsNamePart(text []byte, i int) bool {
	switch {
	case !isNameByte(text[i]):
		return false
	case i == 0 || !isNameByte(text[i-1]):
		return true
	case isUpperByte(text[i]):
		return !isUpperByte(text[i-1]) || i+1 < len(text) && isLower(text[i+1])
	}
	return false
}

// isNameByte reports whether a byte is of a part, not between two.
func isNameByte(c byte) bool { return isAlnum(c) || c >= 0x80 }

// nameKeyOf returns the key of a name.
func nameKeyOf(name []byte) nameKey { return nameKey(fnvOffset).append(name) }

// append returns the key of a name with another one behind it.
func (k nameKey) append(name []byte) nameKey {
	for _, c := range name {
		if isNameByte(c) {
			k = (k ^ nameKey(lowerByte(c))) * fnvPrime
		}
	}
	return k
}

// countNameParts returns how many parts a name has.
func countNameParts(name []byte) (n int) {
	for i := range name {
		if beginsNamePart(name, i) {
			n++
		}
	}
	return n
}

// appendNameKeys adds the keys under which others may speak of a tool: by its name, with its
// server before it, and without it when the name begins so.
func appendNameKeys(all []nameKey, server, tool []byte) []nameKey {
	all = append(all, nameKeyOf(tool), nameKeyOf(server).append(tool))
	if rest := trimServerName(tool, server); countNameParts(rest) > 1 {
		all = append(all, nameKeyOf(rest))
	}
	return all
}

// trimServerName returns a name without the name of its server before it, nil when that
// does not stand there.
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
	if i >= len(tool) || isNameByte(tool[i]) && !beginsNamePart(tool, i) {
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

// appendSuffixKeys adds the keys of a name and of its ends of two parts and more: what a server
// calls its tools in its texts, where their names have something before it.
func appendSuffixKeys(all []nameKey, name []byte) []nameKey {
	all = append(all, nameKeyOf(name))
	left := countNameParts(name)
	for i := 1; i < len(name) && left > 2; i++ {
		if beginsNamePart(name, i) {
			left--
			all = append(all, nameKeyOf(name[i:]))
		}
	}
	return all
}

// plainName returns a name as a Passage has it.
func plainName(name string) []byte { return []byte(NormalizeName(name)) }
