package classify

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// dialectFlags is a bit set that describes how a database delimits quotes and comments.
type dialectFlags uint16

const (
	backslash       dialectFlags = 1 << iota // \ in '…' escapes
	backslashInID                            // the same in "…"
	backslashInBT                            // the same in `…`
	backtick                                 // `…` is a quote
	brackets                                 // […] is a quote
	dollar                                   // $tag$…$tag$ is a quote
	escapeString                             // E'…' has backslashes
	oracleQuote                              // q'[…]' is a quote
	triple                                   // '''…''' is a quote
	nested                                   // comments nest
	executable                               // /*! … */ is executed
	hash                                     // # starts a comment
	slashes                                  // // starts a comment
	dashesWithSpace                          // -- starts a comment only before a blank
	endsAtReturn                             // a carriage return ends a -- comment
)

// dialects are the known dialects. The worst verdict counts.
var dialects = [...]dialectFlags{
	0, // standard SQL: Oracle, Trino, Db2
	nested | dollar | escapeString | endsAtReturn,                              // PostgreSQL, DuckDB
	nested | dollar | escapeString | endsAtReturn | backslash,                  // without standard_conforming_strings
	backslash | backslashInID | hash | dashesWithSpace | executable | backtick, // MySQL, MariaDB
	backslash | backslashInID | hash | dashesWithSpace | backtick,              // versions before the one in the comment
	backslash | hash | dashesWithSpace | executable | backtick,                 // ANSI_QUOTES
	backslash | hash | dashesWithSpace | backtick,
	hash | dashesWithSpace | executable | backtick, // NO_BACKSLASH_ESCAPES
	hash | dashesWithSpace | backtick,
	brackets | backtick, // SQLite
	brackets | nested,   // SQL Server
	oracleQuote,
	backslash | backslashInID | hash | backtick | backslashInBT | triple, // BigQuery
	backslash | dollar | slashes,                                         // Snowflake
	backslash | backslashInID | backtick | backslashInBT | dollar,        // ClickHouse, Spark; shifts covers other differences
	backslash | backslashInID | backtick | backslashInBT | dollar | hash,
}

// shifts are the bits by which dialects can parse a text differently: one dialect skips text that another one parses,
// and a quote inside hides the end. Databases combine these bits in more ways than the listed dialects. Therefore a text in which such a
// part is not self-contained (see isSelfContained) is never a read.
const shifts = backtick | brackets | dollar | oracleQuote | nested | executable | hash | slashes | dashesWithSpace

// dialectSet is a bit set of dialects, in their order.
type dialectSet uint16

// first returns the first dialect of a non-empty set.
func (d dialectSet) first() int { return bits.TrailingZeros16(uint16(d)) }

// agreeingWith returns the dialects that have the same values of these bits as a dialect.
func (d dialectSet) agreeingWith(as, bits dialectFlags) (same dialectSet) {
	for rest := d; rest != 0; rest &= rest - 1 {
		if i := rest.first(); (dialects[i]^as)&bits == 0 {
			same |= 1 << i
		}
	}
	return same
}

// asks is the set of characters that may start a token that dialects read differently.
var asks = func() (is [256]bool) {
	for _, c := range []byte("0123456789eEqQnN-#/'\"`[$") {
		is[c] = true
	}
	return is
}()

// relevantFlags returns the dialect bits that affect how the text from i to end was read. Dialects with the same
// values of these bits read it in the same way.
func (l *sqlLexer) relevantFlags(i, end int) (d dialectFlags) {
	s, read := l.text[i:], l.text[i:end]
	second, third := byte(0), byte(0)
	if len(s) > 1 {
		second = s[1]
	}
	if len(s) > 2 {
		third = s[2]
	}
	also := func(bit dialectFlags, matters bool) {
		if matters {
			d |= bit
		}
	}
	// A line comment, which ended at the character at end.
	returns := func() bool { return strings.IndexByte(l.text[i:min(end+1, len(l.text))], '\r') >= 0 }
	switch c := s[0]; {
	case '0' <= c && c <= '9':
		also(escapeString|oracleQuote|endsAtReturn|triple, len(s) > len(read) && s[len(read)] == '\'')
	case c|0x20 == 'e' && second == '\'':
		d = escapeString
		also(endsAtReturn|triple, len(read) > 1)
	case c|0x20 == 'q':
		also(oracleQuote, second == '\'')
	case c|0x20 == 'n':
		also(oracleQuote, second|0x20 == 'q' && third == '\'')
	case c == '-' && second == '-':
		also(dashesWithSpace, third > ' ')
		also(endsAtReturn, returns())
	case c == '#':
		d = hash
		also(endsAtReturn, returns())
	case c == '/' && second == '*':
		also(executable, third == '!' || third == 'M' || third == 'T')
		also(nested, strings.Contains(read[2:], "/*"))
	case c == '/' && second == '/':
		d = slashes
		also(endsAtReturn, returns())
	case c == '\'':
		also(triple, second == c && third == c)
		also(backslash, hasEscapedEnd(read))
	case c == '"':
		also(triple, second == c && third == c)
		also(backslashInID, hasEscapedEnd(read))
	case c == '`':
		d = backtick
		also(backslashInBT, hasEscapedEnd(read))
	case c == '[':
		return brackets
	case c == '$':
		also(dollar, dollarTagEnd(s) > 0)
	}
	return d
}

// hasEscapedEnd reports whether a backslash escape may change the end of a quote, because a backslash precedes a
// delimiter.
func hasEscapedEnd(quote string) bool {
	for i := 1; i < len(quote); i++ {
		n := strings.IndexByte(quote[i:], '\\')
		if n < 0 {
			break
		}
		if i += n + 1; i < len(quote) && quote[i] == quote[0] {
			return true
		}
	}
	return false
}

// skippedContent returns the content that some databases skip as a comment or quote at the start of a text. lines includes
// comments to the end of the line.
func skippedContent(s string) (inner string, lines bool) {
	open, end := 1, "\n"
	switch c := s[0]; {
	case c == '#':
		return textUpTo(s[1:], end), true
	case strings.HasPrefix(s, "--"), strings.HasPrefix(s, "//"):
		return textUpTo(s[2:], end), true
	case c == '`':
		end = "`"
	case c == '[':
		end = "]"
	case c == '$':
		open = dollarTagEnd(s)
		end = s[:open]
	case c == '/': // the extra part of nested comments
		return nestedRemainder(s), false
	default: // q'[…]'
		open = strings.IndexByte(s, '\'') + 1
		delimiter, n := utf8.DecodeRuneInString(s[open:])
		open, end = open+n, closingDelimiter(delimiter)+"'"
		if inner := textUpTo(s[open:], end); strings.IndexByte(inner, '\'') >= 0 {
			return inner + "'", false
		}
		return "", false
	}
	return textUpTo(s[open:], end), false
}

// nestedRemainder returns the part of a comment that belongs to it only if comments nest.
func nestedRemainder(s string) string {
	end := nestedCommentEnd(s) - len("*/")
	if end < 0 {
		return ""
	}
	first := strings.Index(s[2:], "*/") + 4
	return s[min(first, end):end]
}

// nestedCommentEnd returns the end of the comment at the start of a text if comments nest, or -1 if it is missing.
func nestedCommentEnd(s string) int {
	for i, depth := 0, 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s[i:], "*/"):
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// closingDelimiter returns the end of an Oracle quote.
func closingDelimiter(open rune) string {
	if at := strings.IndexRune("[{(<", open); at >= 0 {
		return "]})>"[at : at+1]
	}
	return string(open)
}

// textUpTo returns the text up to end. It returns "" if end is missing, because no database with this syntax accepts
// such a text.
func textUpTo(s, end string) string {
	i := strings.Index(s, end)
	if i < 0 && end == "\n" {
		i = len(s)
	}
	return s[:max(i, 0)]
}

// isSelfContained reports whether a part that some databases skip is self-contained: no quote or comment that starts
// in it continues after it.
func isSelfContained(s string) bool {
	inner, lines := skippedContent(s)
	for i := 0; i < len(inner); i++ {
		c, rest := inner[i], inner[i+1:]
		end := c
		switch c {
		case '\'', '"', '`':
		case '[':
			if end = ']'; s[0] == '[' {
				continue
			}
		case '#', '-', '/', '\r', '$':
			twice := strings.HasPrefix(rest, string(c))
			if !lines && (c == '#' || c != '$' && twice) || c == '/' && strings.HasPrefix(rest, "*") ||
				c == '\r' && rest != "" || c == '$' && dollarTagEnd(inner[i:]) > 0 {
				return false
			}
			continue
		default:
			continue
		}
		n := strings.IndexByte(rest, end)
		if n < 0 || strings.IndexByte(rest[:n], '\\') >= 0 {
			return false
		}
		i += n + 1
	}
	return true
}

// isAmbiguousRawString reports whether the end of a raw string is ambiguous. A quote after a backslash ends it in
// Spark but not in BigQuery.
func isAmbiguousRawString(s string) bool {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	inner, _, _ := strings.Cut(s[len(quote):], quote)
	return strings.HasSuffix(inner, `\`) || len(quote) == 3 && strings.Contains(inner, `\`+s[:1])
}

// dollarTagEnd returns the end of the $tag$ at the start of a text, 0 if there is none.
func dollarTagEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] < '0' || s[i] > '9') {
		for i < len(s) && s[i] != '$' && (s[i] >= utf8.RuneSelf || s[i] != '@' && letters[s[i]] != 0) {
			i++
		}
	}
	if i == len(s) || s[i] != '$' {
		return 0
	}
	return i + 1
}
