package redact

// maxName is how much of a name is looked at, from its end.
const maxName = 64

// A spelledName is a name in lower case without its separators.
type spelledName struct {
	buf  [maxName]byte
	n    int
	last int // where its last word begins
}

func (s *spelledName) all() []byte { return s.buf[:s.n] }

// spell splits a name at separators and at changes of case, as in api_key,
// X-API-Key, apiKey and APIKey.
func (s *spelledName) spell(name []byte) {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	for i, c := range name {
		switch {
		case !has(c, alnum):
			s.last = s.n
			continue
		case has(c, upper):
			afterSmall := i > 0 && has(name[i-1], lower|digit)
			beforeSmall := i > 0 && i+1 < len(name) && has(name[i-1], upper) && has(name[i+1], lower)
			if afterSmall || beforeSmall {
				s.last = s.n
			}
			c |= 0x20
		}
		s.buf[s.n] = c
		s.n++
	}
}

// classify returns what the value of something with this name is: the kind of
// credential and how sure that is. The kind is empty for a harmless name.
func classify(name []byte) (string, strength) {
	if !mayBeCredential(name, len(name)) {
		return "", harmless
	}
	var s spelledName
	s.spell(name)
	spelled := s.all()
	rules := known.names[spelled[len(spelled)-1]] // which is a letter
	for i := range rules {
		r := &rules[i]
		begin := len(spelled) - len(r.end)
		if begin < 0 || string(spelled[begin:]) != r.end || r.word && begin != s.last {
			continue
		}
		if r.end == "token" && known.harmlessToken(spelled[:begin]) {
			return "", harmless
		}
		return r.kind, r.strength
	}
	return "", harmless
}

// harmlessToken reports whether what stands before "token" makes it no credential.
func (k *knowledge) harmlessToken(before []byte) bool {
	for length := 3; length <= 13 && length <= len(before); length++ {
		if !k.noTokens[string(before[len(before)-length:])] {
			continue
		}
		// "end" is for end_token, not for backend_token.
		if length == len(before) || length >= 4 {
			return true
		}
	}
	return false
}

// mayBeCredential is the quick test for the name that ends before end.
func mayBeCredential(text []byte, end int) bool {
	if end == 0 || !has(text[end-1], lower|upper) {
		return false
	}
	if end < 3 {
		return end == 2 && text[0]|0x20 == 'p' && text[1]|0x20 == 'w'
	}
	if !known.nameEnds.has(text[end-3], text[end-2], text[end-1]) {
		return false
	}
	// Names in -ation are common, and only one of them is meant.
	if text[end-1]|0x20 == 'n' && text[end-2]|0x20 == 'o' && (end < 6 || text[end-6]|0x20 != 'z') {
		return false
	}
	return true
}
