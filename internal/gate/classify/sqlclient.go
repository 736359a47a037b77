package classify

import "strings"

// isClientCommand reports whether a token starts a line that a client of a database executes instead of sending it:
// GO and :r of sqlcmd, / and HOST of SQL*Plus, !system of SnowSQL. It does not if the line before it is not complete.
func (s sqlStatement) isClientCommand(i int) bool {
	t := s.tokens[i]
	before := strings.TrimRight(s.text[:t.start], " \t")
	if !strings.HasSuffix(before, "\n") {
		return false
	}
	line, _, _ := strings.Cut(s.text[t.start:], "\n")
	line = strings.TrimSpace(line)
	switch t.kind {
	case '/', '.':
		return len(line) == 1
	case aWord:
		if s.isWordAt(i, "go") {
			rest := strings.TrimLeft(line[2:], " \t0123456789")
			return rest == "" || strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*")
		}
	}
	if i == 0 || !s.mayEndStatement(i-1) || len(line) == 1 {
		return false
	}
	switch t.kind {
	case '!':
		return strings.IndexByte("=~<>", line[1]) < 0
	case ':':
		first, _, _ := strings.Cut(line[1:], " ")
		switch first = strings.ToLower(first); first {
		case "r", "out", "error", "perftrace", "connect", "setvar", "ed", "xml", "on":
			return true
		}
		return line[1] == '!'
	case aWord:
		name := strings.TrimLeft(line, "@")
		if at := len(line) - len(name); at > 0 {
			return at < 3 && name != "" && (letters[name[0]] != 0 || strings.IndexByte("/.~\"", name[0]) >= 0) && s.tokenKind(i+1) != '('
		}
		blank := strings.HasSuffix(strings.TrimRight(before[:len(before)-1], " \t\r"), "\n")
		word, rest, _ := strings.Cut(line, " ")
		return blank && s.hasClass(i, sqlClient) && rest != "" && len(word) == int(t.end-t.start) && !s.isWordAt(i+1, "with") && !s.isWordAt(i+1, "as")
	}
	return false
}

// mayEndStatement reports whether a statement may end with a token.
func (s sqlStatement) mayEndStatement(i int) bool {
	switch s.tokenKind(i) {
	case aQuoted, aString, aNumber, ')', ']', '*', '}':
		return true
	case aWord:
		return !s.hasClass(i, sqlGoesOn|sqlClause)
	}
	return false
}
