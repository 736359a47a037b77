// Package redact masks values that look like credentials in JSON and in text. Each mask contains the kind of the
// credential and a short hash. Equal secrets have equal masks, but the secret cannot be read.
//
// It masks:
//   - tokens with a known form, also if source code, a list or line ends split them
//   - private key blocks, the credentials after Bearer and Basic, and passwords in URLs
//   - the values of members, variables, headers, parameters, comparisons and flags with a name like password or
//     api_key, also in sentences ("my password is …")
//   - all of these inside base64, hexadecimal digits, and the escapes of source code and URLs
//
// A JSON member with such a name is always masked. In plain text, the value must also look like a secret, because text
// mentions passwords more often than it contains one.
//
// Main files:
//   - redact.go, url.go: the functions for JSON, text, command arguments, log attributes and URLs
//   - credentials.txt, rules.go: the names, forms and placeholders of credentials, and their parser
//   - prefilter.go: the quick test that rejects most text
//   - text.go, json.go: scan plain text and JSON
//   - assignment.go: values after an operator, as in name=value
//   - sentences.go: values in sentences
//   - flags.go: passwords after short flags
//   - tokens.go, splittoken.go: tokens with a known form, whole and in pieces
//   - names.go, values.go: classify names, and check whether a value looks like a secret
//   - base64.go, escapes.go, decoded.go: decode parts of a text and scan the result
//   - finder.go, mask.go: collect the found credentials and write the masks
//   - chars.go: classes of characters
//
// Guarantees:
//   - Valid JSON stays valid JSON, and only strings change.
//   - A text without credentials is returned as the same slice, without a copy.
//   - Masking twice gives the same result as masking once.
//   - The time is linear in the size of the text.
//
// Limits: it does no I/O. It changes what is stored and shown, never what is forwarded. It does not find a credential
// that looks like an ordinary word under an ordinary name.
package redact

import (
	"encoding/json"
	"log/slog"
	"strings"
	"unsafe"
)

// JSON masks the credentials in a JSON text. If it finds none, it returns raw itself. It never modifies raw.
func JSON(raw json.RawMessage) json.RawMessage {
	return maskUntilStable(raw, func(f *credentialFinder, raw []byte) { f.findInJSON(raw, 0) })
}

// Text masks the credentials in plain text. It does not allocate if nothing looks like a credential.
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

// maskUntilStable masks the credentials that find reports, and repeats this until find reports none, which is nearly
// always the second time. After a credential is replaced, the text next to it may look like one, and masking twice must
// equal masking once.
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

// Attr masks an attribute in the program's log, because its value may contain external text. It is for
// slog.HandlerOptions.
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

// Args returns a copy of a command's arguments with masked credentials. It also masks any value after a credential
// flag, or after the = of such a flag.
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

// IsCredentialName reports whether a name is that of a credential, including weak names such as key. It matches more
// names than masking does, because its result only leads to a question to the user. Names of limits (MAX_TOKENS) and of
// public values (PUBLIC_KEY) do not match.
func IsCredentialName(name string) bool {
	first, _, _ := strings.Cut(strings.ToLower(name), "_")
	kind, _ := classifyName([]byte(name))
	return kind != "" && first != "max" && first != "public"
}

// MaskedRanges returns the ranges of raw that are masked in shown, as pairs of offsets. shown must be the result of
// masking raw. If the ranges are ambiguous, it returns all of raw.
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
		if n := leadingMaskLength([]byte(text[i:min(len(text), i+64)])); n > 0 {
			around = append(around, text[from:i])
			from, i = i+n, i+n-1
		}
	}
	return append(around, text[from:])
}
