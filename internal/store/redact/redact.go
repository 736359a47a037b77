// Package redact finds values that look like credentials in JSON and in text
// and replaces each by its kind and a short hash, so that two places that held
// the same secret can be recognised and the secret cannot be read.
//
// It guarantees that well-formed JSON stays well-formed JSON in which only
// strings were changed, that a text without credentials comes back as the same
// bytes (the same slice, no copy), that masking twice is masking once, and that
// the time is linear in the size. It does no I/O and it is not a gate: it
// decides what is stored and shown, never what is forwarded, and a credential
// that looks like an ordinary word under an ordinary name is not found.
//
// What is taken for a credential: tokens that can be recognised by their own
// form, also in pieces that a program, a list or lines part, private key blocks,
// what follows Bearer and Basic, passwords in URLs, and the values of members,
// variables, headers, parameters, comparisons and flags with a name like password
// or api_key, or that text tells ("my password is …"), all of them also within
// base64, hexadecimal digits and the escapes of programs and URLs; the forms and
// the names stand in credentials.txt. A JSON member of such a name is masked whatever its value;
// in plain text the value must look like a secret too, as text talks about
// passwords more often than it holds one.
//
// The files stand on one another in this order: chars; knowledge (of
// credentials.txt), names and tokens; mask, values (what a value looks like), base64
// and codes; finder, with told, joined and flags; scan, the quick test; encoded,
// text, assign and json, which find what is masked; redact and url.
package redact

import (
	"encoding/json"
	"log/slog"
	"strings"
	"unsafe"
)

// JSON masks what looks like a credential in a JSON text. The slice that came
// in is returned when nothing was found; it is never written to.
func JSON(raw json.RawMessage) json.RawMessage {
	return maskUntilStable(raw, func(f *credentialFinder, raw []byte) { f.findInJSON(raw, 0) })
}

// Text masks what looks like a credential in plain text. It allocates nothing
// when nothing looks like one.
func Text(s string) string {
	if len(s) < minCredential || !mayHoldCredential(unsafe.Slice(unsafe.StringData(s), len(s))) {
		return s
	}
	text := []byte(s)
	if got := maskUntilStable(text, (*credentialFinder).findInText); len(got) != len(s) || string(got) != s {
		return string(got)
	}
	return s
}

// maskUntilStable masks what find finds until it finds nothing more, which is nearly
// always the second time: where a credential was cut out, what stood beside it
// may have become one, and masking twice has to be masking once.
func maskUntilStable(text []byte, find func(f *credentialFinder, text []byte)) []byte {
	const most = 8
	for range most {
		if !mayHoldCredential(text) {
			break
		}
		var f credentialFinder
		find(&f, text)
		if len(f.spans) == 0 {
			break
		}
		text = f.replaceSpans(text)
	}
	return text
}

// Attr masks an attribute of the program's log, whose values hold names that
// others chose. It is for slog.HandlerOptions.
func Attr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		text := a.Value.String()
		if masked := Text(text); masked != text {
			return slog.String(a.Key, masked)
		}
	}
	return a
}

// Args returns a copy of a command's arguments with its credentials masked: what
// follows a telling flag, or stands behind its =, whatever it looks like.
func Args(args []string) []string {
	shown := make([]string, len(args))
	expect := ""
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		kind, how := classifyName([]byte(name))
		flag := strings.HasPrefix(arg, "-")
		switch {
		case expect != "" && !flag:
			shown[i] = maskValue(expect, arg)
		case assigned && kind != "" && (flag || how == strong):
			shown[i] = name + "=" + maskValue(kind, value)
		default:
			shown[i] = Text(arg)
		}
		expect = ""
		switch {
		case flag && !assigned && how == strong:
			expect = kind
		case isPasswordFlag(args, i):
			expect = "password"
		}
	}
	return shown
}

// IsCredentialName reports whether a name, also one that tells little, as key, is that of a
// credential. It is wider than what is masked: it is for asking a person. A limit
// (MAX_TOKENS) and what is public (PUBLIC_KEY) are none.
func IsCredentialName(name string) bool {
	first, _, _ := strings.Cut(strings.ToLower(name), "_")
	kind, _ := classifyName([]byte(name))
	return kind != "" && first != "max" && first != "public"
}

// MaskedRanges returns the parts of raw, from and to as pairs of offsets, that shown
// masks, where shown is what this package made of it. Where it cannot be told for
// certain which they are, that is all of raw.
func MaskedRanges(raw, shown string) (parts [][2]int) {
	if raw == shown {
		return nil
	}
	whole := [][2]int{{0, len(raw)}}
	around := splitAtMasks(shown)
	rest, ok := strings.CutPrefix(raw, around[0])
	if !ok || len(around) == 1 {
		return whole
	}
	at := len(around[0])
	for i, text := range around[1:] {
		n := strings.Index(rest, text)
		switch last := i == len(around)-2; {
		case last && strings.HasSuffix(rest, text):
			n = len(rest) - len(text)
		case last || text == "" || n < 0 || strings.Count(rest, text) != 1:
			return whole
		}
		parts = append(parts, [2]int{at, at + n})
		rest, at = rest[n+len(text):], at+n+len(text)
	}
	return parts
}

// splitAtMasks returns the texts before, between and after the masks in a text.
func splitAtMasks(text string) (around []string) {
	from := 0
	for i := 0; i < len(text); i++ {
		if n := maskLength([]byte(text[i:min(len(text), i+64)])); n > 0 {
			around = append(around, text[from:i])
			from, i = i+n, i+n-1
		}
	}
	return append(around, text[from:])
}
