package redact

// maxNesting is how many times JSON is looked for in a string of JSON.
const maxNesting = 4

// A credentialFinder collects spans, in the order of the text and without overlap.
type credentialFinder struct {
	spans []credentialSpan
	// curl is true while looking through a text that holds a curl command.
	curl bool

	decodings   int // how many times the text was decoded
	base64Run   base64Run
	queryDoneTo int // escapes of URLs before here have been looked at
}

func (f *credentialFinder) addSpan(text []byte, from, to int, kind string) {
	if from < to {
		f.spans = append(f.spans, credentialSpan{from, to, kind, shortHash(text[from:to])})
	}
}

// replaceSpans returns text with the spans replaced.
func (f *credentialFinder) replaceSpans(text []byte) []byte {
	out := make([]byte, 0, len(text)+16*len(f.spans))
	done := 0
	for _, s := range f.spans {
		out = append(out, text[done:s.from]...)
		out = appendMask(out, s.kind, s.sum)
		done = s.to
	}
	return append(out, text[done:]...)
}

// addNamedValue adds the value of something with a telling name or place: as the
// token that it is, if it is one from its beginning to its end, and else as
// kind. The scheme before a credential, as Bearer, stays to be read. It returns
// the end of the value.
func (f *credentialFinder) addNamedValue(t []byte, from, to int, kind string) int {
	if n := authSchemeLength(t[from:to]); n > 0 {
		from += n
	}
	if maskLength(t[from:to]) == to-from {
		return to
	}
	if end, own := matchToken(t[:to], from); end == to {
		kind = own
	}
	f.addSpan(t, from, to, kind)
	return to
}
