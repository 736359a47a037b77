package redact

import "bytes"

// minToken is the minimum length of tokens with a known form.
const minToken = 15

// mayBeTokenAt is the quick test for a token that begins at i.
func mayBeTokenAt(text []byte, i int) bool {
	if i+minToken > len(text) {
		return false
	}
	if rules.tokenStarts.has(text[i], text[i+1], text[i+2]) {
		return true
	}
	switch c := text[i]; {
	case '0' <= c && c <= '9': // for telegramTokenLength and facebookTokenLength
		n := runEnd(text[:min(len(text), i+17)], i+5, digit)
		return n < len(text) && (text[n] == ':' || text[n] == '|')
	case 'M' <= c && c <= 'O': // for discordTokenLength
		return i+26 < len(text) && (text[i+24] == '.' || text[i+25] == '.' || text[i+26] == '.')
	}
	return false
}

// matchToken returns the end and the kind of the token that begins at i, or 0. If there is no token, it has examined
// only a bounded range. If there is one, scanning continues after it.
func matchToken(text []byte, i int) (end int, kind string) {
	if !mayBeTokenAt(text, i) {
		return 0, ""
	}
	rest := text[i:]
	for _, r := range rules.tokens[text[i]] {
		if len(rest) < len(r.prefix)+r.min || string(rest[:len(r.prefix)]) != r.prefix {
			continue
		}
		if n := r.matchAfterPrefix(rest[len(r.prefix):]); n > 0 {
			return i + len(r.prefix) + n, r.kind
		}
	}
	switch {
	case bytes.HasPrefix(rest, []byte("eyJ")):
		if n := jwtLength(rest); n > 0 {
			return i + n, "jwt"
		}
	case bytes.HasPrefix(rest, []byte("ZXlK")): // "eyJ" in base64
		if n := runEnd(rest, 0, base64); n >= 100 {
			return i + n, "jwt"
		}
	case inCharSet(text[i], digit):
		if n := telegramTokenLength(rest); n > 0 {
			return i + n, "telegram-token"
		}
		if n := facebookTokenLength(rest); n > 0 {
			return i + n, "facebook-token"
		}
	case 'M' <= text[i] && text[i] <= 'O':
		if n := discordTokenLength(rest); n > 0 {
			return i + n, "discord-token"
		}
	}
	return 0, ""
}

// matchAfterPrefix returns the length of the characters after the prefix, or 0.
func (r *tokenRule) matchAfterPrefix(rest []byte) int {
	const enough = 64 // a random text of this length contains a digit
	bound := r.max
	if bound == 0 {
		bound = max(r.min, enough)
	}
	n := runEnd(rest[:min(bound, len(rest))], 0, r.set)
	if n < r.min || r.digits && !bytes.ContainsAny(rest[:n], "0123456789") {
		return 0
	}
	if r.max == 0 {
		n = runEnd(rest, n, r.set)
	}
	for n > r.min && r.set&dot != 0 && rest[n-1] == '.' { // dots that end a sentence
		n--
	}
	if n < len(rest) && inCharSet(rest[n], alnum) {
		return 0
	}
	return n
}

// jwtLength returns the length of the JSON Web Token at the beginning of text, or 0. The signature may be
// missing.
func jwtLength(text []byte) int {
	const minPart, maxHeader = 14, 4096
	header := runEnd(text[:min(len(text), maxHeader)], 0, word|equals)
	if header < minPart || header+4 >= len(text) || text[header] != '.' {
		return 0
	}
	claims := text[header+1:]
	if claims[0] != 'e' || claims[1] != 'y' && claims[1] != 'w' {
		return 0
	}
	end := runEnd(claims, 0, word|equals)
	if end < minPart {
		return 0
	}
	for end < len(claims) && claims[end] == '.' && end+1 < len(claims) && inCharSet(claims[end+1], word) {
		end = runEnd(claims, end+1, word|equals)
	}
	return header + 1 + end
}

// telegramTokenLength returns the length of the Telegram bot token at the beginning of text, or 0: 8 to 16
// digits, a colon, A and 34 more characters.
func telegramTokenLength(text []byte) int {
	n := runEnd(text[:min(len(text), 17)], 0, digit)
	if n < 5 || n > 16 || n+36 > len(text) || text[n] != ':' || text[n+1] != 'A' {
		return 0
	}
	end := runEnd(text[:min(len(text), n+40)], n+1, word)
	if end-n-1 < 34 || end-n-1 > 36 || end < len(text) && inCharSet(text[end], alnum) {
		return 0
	}
	return end
}

// facebookTokenLength returns the length of the Facebook app token at the beginning of text, or 0: an ID of 15
// or 16 digits, a bar and 27 more characters.
func facebookTokenLength(text []byte) int {
	const secret = 27
	n := runEnd(text[:min(len(text), 17)], 0, digit)
	if n < 15 || n > 16 || n+1+secret > len(text) || text[n] != '|' || runEnd(text[:min(len(text), n+2+secret)], n+1, word) != n+1+secret {
		return 0
	}
	return n + 1 + secret
}

// discordTokenLength returns the length of the Discord bot token at the beginning of text, or 0: an ID in
// base64, a time of 6 characters and 27 to 38 more.
func discordTokenLength(text []byte) int {
	const shortest, longest = 24, 26
	id := runEnd(text[:min(len(text), longest+1)], 0, word)
	if id < shortest || id > longest || id+35 > len(text) || text[id] != '.' || text[id+7] != '.' ||
		runEnd(text[:id+7], id+1, word) != id+7 {
		return 0
	}
	end := runEnd(text[:min(len(text), id+8+39)], id+8, word)
	if n := end - id - 8; n < 27 || n > 38 {
		return 0
	}
	return end
}

const mailchimpDigits = 32

// mailchimpKeyEnd returns the end of the Mailchimp key whose last dash is at i, or 0: 32 hexadecimal
// digits and the data center, such as -us12.
func mailchimpKeyEnd(t []byte, i int) int {
	if from := i - mailchimpDigits; from < 0 || i+3 >= len(t) || t[i+1] != 'u' || t[i+2] != 's' || runEnd(t, from, hexLower) != i || from > 0 && inCharSet(t[from-1], alnum) && (from < 2 || t[from-2] != '\\') {
		return 0
	}
	end := runEnd(t, i+3, digit)
	if end == i+3 || end > i+5 || end < len(t) && inCharSet(t[end], alnum) {
		return 0
	}
	return end
}
