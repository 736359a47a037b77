package redact

// maxName limits how many characters at the end of a name are examined.
const maxName = 64

// A normalizedName is a name in lower case without separators.
type normalizedName struct {
	buf  [maxName]byte
	n    int
	last int // offset of the last word
}

func (s *normalizedName) bytes() []byte { return s.buf[:s.n] }

// normalize removes separators and finds the last word. Words begin at separators and at changes of case:
// api_key, X-API-Key, apiKey, APIKey.
func (s *normalizedName) normalize(name []byte) {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	for i, c := range name {
		switch {
		case !inCharSet(c, alnum):
			s.last = s.n
			continue
		case inCharSet(c, upper):
			afterSmall := i > 0 && inCharSet(name[i-1], lower|digit)
			beforeSmall := i > 0 && i+1 < len(name) && inCharSet(name[i-1], upper) && inCharSet(name[i+1], lower)
			if afterSmall || beforeSmall {
				s.last = s.n
			}
			c |= 0x20
		}
		s.buf[s.n] = c
		s.n++
	}
}

// classifyName returns the kind of credential that a name suggests, and the strength of the name. The kind of a
// harmless name is "".
func classifyName(name []byte) (string, credentialNameStrength) {
	if !mayEndCredentialName(name, len(name)) {
		return "", harmless
	}
	var s normalizedName
	s.normalize(name)
	spelled := s.bytes()
	candidates := rules.names[spelled[len(spelled)-1]] // the last character of spelled is a letter
	for i := range candidates {
		r := &candidates[i]
		begin := len(spelled) - len(r.end)
		if begin < 0 || string(spelled[begin:]) != r.end || r.word && begin != s.last {
			continue
		}
		if r.end == "token" && rules.isHarmlessTokenName(spelled[:begin]) {
			return "", harmless
		}
		return r.kind, r.strength
	}
	return "", harmless
}

// isHarmlessTokenName reports whether the words before "token" show that the name is not that of a credential.
func (k *credentialRules) isHarmlessTokenName(before []byte) bool {
	for length := 3; length <= 13 && length <= len(before); length++ {
		if !k.harmlessBeforeToken[string(before[len(before)-length:])] {
			continue
		}
		// "end" matches end_token, but not backend_token.
		if length == len(before) || length >= 4 {
			return true
		}
	}
	return false
}

// mayEndCredentialName is the quick test for a credential name that ends at end.
func mayEndCredentialName(text []byte, end int) bool {
	if end == 0 || !inCharSet(text[end-1], lower|upper) {
		return false
	}
	if end < 3 {
		return end == 2 && text[0]|0x20 == 'p' && text[1]|0x20 == 'w'
	}
	if !rules.nameEnds.has(text[end-3], text[end-2], text[end-1]) {
		return false
	}
	// Names that end in -ation are common, and only one of them is a credential name.
	if text[end-1]|0x20 == 'n' && text[end-2]|0x20 == 'o' && (end < 6 || text[end-6]|0x20 != 'z') {
		return false
	}
	return true
}
