package redact

// maxNesting limits how many levels of JSON within JSON strings are scanned.
const maxNesting = 4

// A credentialFinder collects the spans of credentials, in text order and without overlap.
type credentialFinder struct {
	spans []credentialSpan
	// curl is true while it examines a text that contains a curl command.
	curl bool

	decodings   int // how many times text was decoded
	base64Run   base64Run
	queryDoneTo int // the escapes of URLs before this offset were examined
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

// addNamedValue adds the span of a value that a credential name or its position identifies. If the whole value is a
// token, the kind of the token replaces kind. An authorization scheme before the credential, such as Bearer, is not
// masked. addNamedValue returns the end of the value.
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
