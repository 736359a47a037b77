package redact

// maxNesting limits the depth of JSON within strings of JSON that is scanned.
const maxNesting = 4

// A credentialFinder collects the spans of credentials, in text order and without overlap.
type credentialFinder struct {
	spans []credentialSpan
	// curl is true while it examines a text that contains a curl command.
	curl bool

	decodings   int // how often the text was decoded
	base64Run   base64Run
	queryDoneTo int // escapes of URLs before this offset were examined
}

func (f *credentialFinder) addSpan(text []byte, from, to int, kind string) {
	if from < to {
		f.spans = append(f.spans, credentialSpan{from, to, kind, shortHash(text[from:to])})
	}
}

// replaceSpans returns text with the spans replaced by masks.
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

// addNamedValue adds the span of the value of a credential name or position. Its kind is that of the token if the
// whole value is one, otherwise kind. An authorization scheme before the credential, such as Bearer, stays readable.
// It returns the end of the value.
func (f *credentialFinder) addNamedValue(t []byte, from, to int, kind string) int {
	if n := authSchemeLength(t[from:to]); n > 0 {
		from += n
	}
	if leadingMaskLength(t[from:to]) == to-from {
		return to
	}
	if end, own := matchToken(t[:to], from); end == to {
		kind = own
	}
	f.addSpan(t, from, to, kind)
	return to
}
