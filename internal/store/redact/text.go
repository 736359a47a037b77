package redact

import "bytes"

// findInText finds credentials in plain text. It scans from left to right and never goes back before the end of a span.
// For each character, it examines a bounded range.
func (f *credentialFinder) findInText(t []byte) {
	f.curl, f.base64Run, f.queryDoneTo = bytes.Contains(t, []byte("curl")), base64Run{}, 0
	for i := 0; i < len(t); {
		switch c := t[i]; {
		case inCharSet(c, alnum):
			i = f.findAtWord(t, i)
		case c == '-':
			i = f.findAtDash(t, i)
		case c == ':' && bytes.HasPrefix(t[i:], []byte("://")):
			i = f.findURLPassword(t, i)
		case c == ':' || c == '=' || c == '>' || c == ',':
			i = f.findAssignedValue(t, i)
		case c == '[':
			i += max(1, leadingMaskLength(t[i:]))
		case c == '\\':
			i = f.findAtBackslash(t, i)
		case c == '%':
			i = f.findAtPercentEscape(t, i)
		case c == '\x1b':
			i = skipColorEscape(t, i)
		default:
			i++
		}
	}
}

// findAtWord examines the word that begins at i. The word may be a token, or an authorization scheme before a
// credential.
func (f *credentialFinder) findAtWord(t []byte, i int) int {
	if i+3 <= len(t) && rules.tokenStarts.has(t[i], t[i+1], t[i+2]) {
		if end := f.addSplitToken(t, i); end > 0 {
			return end
		}
	}
	if end, kind := matchToken(t, i); end > 0 {
		if kind == "teams-webhook" { // the characters after it cannot belong to another token
			end = runEnd(t, end, word|slash|dot|atSign)
		}
		f.addSpan(t, i, end, kind)
		return end
	}
	end := runEnd(t, i, alnum)
	if scheme := t[i:end]; len(scheme) <= 6 && end < len(t) && t[end] == ' ' && (hasFoldPrefix(scheme, "bearer") || hasFoldPrefix(scheme, "basic")) {
		from := end + 1
		to := runEnd(t, from, base64|dot)
		if to-from >= minToken && looksRandom(t[from:to], 1) {
			return f.addNamedValue(t, from, to, "authorization")
		}
	}
	if end < len(t) && t[end] == ' ' && mayEndCredentialName(t, end) {
		if next := f.addSentenceValueAfter(t, end); next > end {
			return next
		}
	}
	if end-i >= minHex {
		if next, found := f.findInHex(t, i, end); found {
			return next
		}
	}
	if end-i == 2 && f.decodings < maxEncodings {
		if to := hexDumpEnd(t, i, minToken); to > 0 {
			next, _ := f.findInHexBytes(t, i, to, i+2, 3)
			return next
		}
	}
	return f.findInBase64(t, i, end)
}

// findAtDash examines the dash at i, which may begin a PEM block or a flag with a value.
func (f *credentialFinder) findAtDash(t []byte, i int) int {
	if i+1 < len(t) && t[i+1] == '-' {
		if end := privateKeyEnd(t, i); end > 0 {
			f.addSpan(t, i, end, "private-key")
			return end
		}
	}
	if end := mailchimpKeyEnd(t, i); end > 0 && (len(f.spans) == 0 || f.spans[len(f.spans)-1].to <= i-mailchimpDigits) {
		f.addSpan(t, i-mailchimpDigits, end, "mailchimp-key")
		return end
	}
	if i > 0 && !inCharSet(t[i-1], space|quoted|closer) {
		return i + 1
	}
	if end := f.findFlagPassword(t, i); end > 0 {
		return end
	}
	name := i + 1
	if name < len(t) && t[name] == '-' {
		name++
	}
	end := runEnd(t[:min(len(t), name+maxName)], name, word)
	if end == name || t[name] == '-' || end >= len(t) || t[end] != ' ' {
		return max(runEnd(t, end, alnum), i+1)
	}
	v := parseValue(t, skipSpace(t, end))
	if f.curl && (string(t[i:end]) == "-u" || string(t[i:end]) == "--user") {
		if colon := bytes.IndexByte(t[v.from:v.to], ':'); colon > 0 && colon+1 < v.to-v.from && t[v.from] != '$' {
			return f.addNamedValue(t, v.from+colon+1, v.fullEnd(t), "password")
		}
		return end
	}
	kind, how := classifyName(t[name:end])
	if kind == "" || name-i < 2 || isPlaceholder(t[v.from:v.to]) {
		return end
	}
	if value := t[v.from:v.to]; how == strong && len(value) >= 6 && looksRandom(value, 1) || looksRandom(value, 3) {
		return f.addNamedValue(t, v.from, v.fullEnd(t), kind)
	}
	return end
}

// privateKeyEnd returns the end of the PEM private key that begins at i, or 0. If the block is cut off, its end is the
// end of the text.
func privateKeyEnd(t []byte, i int) int {
	const begin, private, end, longestHeader = "-----BEGIN ", "PRIVATE KEY", "-----END ", 80
	if !bytes.HasPrefix(t[i:], []byte(begin)) {
		return 0
	}
	header := t[i+len(begin) : min(len(t), i+longestHeader)]
	n := bytes.Index(header, []byte("-----"))
	if n < 0 || !bytes.Contains(header[:n], []byte(private)) {
		return 0
	}
	body := i + len(begin) + n + len("-----")
	if body < len(t) && inCharSet(t[body], quoted) { // source code that contains only the header
		return 0
	}
	footer := bytes.Index(t[i:], []byte(end))
	if footer < 0 {
		return len(t)
	}
	footer += i + len(end)
	if n := bytes.Index(t[footer:min(len(t), footer+longestHeader)], []byte("-----")); n >= 0 {
		return footer + n + len("-----")
	}
	return footer
}

// findURLPassword finds a password before the host of a URL. The "://" is at i.
func (f *credentialFinder) findURLPassword(t []byte, i int) int {
	const longest = 1024
	from := i + 3
	end := from
	for end < len(t) && end < from+longest && !inCharSet(t[end], space|quoted) && !isHostEnd(t[end]) {
		end++
	}
	at := bytes.LastIndexByte(t[from:end], '@')
	if at <= 0 {
		return from
	}
	at += from
	colon := bytes.IndexByte(t[from:at], ':')
	if colon >= 0 && from+colon+1 < at {
		if secret := t[from+colon+1 : at]; !isReference(secret) && !isOneRepeatedChar(secret) && leadingMaskLength(secret) != len(secret) {
			f.addSpan(t, from+colon+1, at, "url-password")
		}
		return at
	}
	if colon < 0 && at-from >= minToken && looksRandom(t[from:at], 3) { // a token as the user
		f.addNamedValue(t, from, at, "url-password")
	}
	return at
}

// skipColorEscape skips an escape sequence of a terminal, such as "\x1b[31m".
func skipColorEscape(t []byte, i int) int {
	if i+1 >= len(t) || t[i+1] != '[' {
		return i + 1
	}
	const longest = 16
	end := i + 2
	for end < len(t) && end < i+longest && (inCharSet(t[end], digit) || t[end] == ';') {
		end++
	}
	if end < len(t) && inCharSet(t[end], lower|upper) {
		end++
	}
	return end
}

// findInBase64 decodes the letters and digits from i to end if they may be base64. If the decoded text contains a
// credential, it adds the whole base64 text. It returns the offset at which scanning continues.
func (f *credentialFinder) findInBase64(t []byte, i, end int) int {
	if end-i < minBase64 || f.decodings == maxEncodings {
		return end
	}
	for first := range 4 {
		if !holdsBase64TextFrom(t[i:end], first) || !f.base64Run.markOffsetTried(t, i, first) {
			continue
		}
		to := f.base64Run.to
		if spans := f.findInDecoded(decodeBase64From(t[i:to], first)); len(spans) > 0 {
			to = runEnd(t, to, equals)
			f.addSpan(t, i, to, spans[0].kind)
			return to
		}
	}
	return end
}
