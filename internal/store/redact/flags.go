package redact

import (
	"bytes"
	"slices"
)

// This file finds passwords after short flags whose meaning depends on the command, as in docker login -p.

// flagPasswordStart returns the offset of the password after the short flag at i, or 0. It does not check
// the value.
func flagPasswordStart(t []byte, i int) int {
	const farthest = 256
	if i+3 >= len(t) || !inCharSet(t[i+1], lower|upper) || i > 0 && !inCharSet(t[i-1], space|quoted) && (i < 2 || t[i-2] != '\\') {
		return 0
	}
	apart := !inCharSet(t[i+2], ident)
	for _, r := range rules.flags {
		if r.flag == t[i+1] && (apart && r.apart || !apart && r.attached) && containsCommand(commandLineBefore(t, max(0, i-farthest), i), r.command) {
			return skipSpace(t, i+2)
		}
	}
	return 0
}

// commandLineBefore returns the text before i on its line. A backslash continues a line.
func commandLineBefore(t []byte, low, i int) []byte {
	from := i
	for from > low && (t[from-1] != '\n' || from > low+1 && t[from-2] == '\\') {
		from--
	}
	return t[from:i]
}

// containsCommand reports whether a line contains a command as a separate word.
func containsCommand(line []byte, command string) bool {
	for {
		n := bytes.LastIndex(line, []byte(command))
		if n < 0 {
			return false
		}
		end := n + len(command)
		if (n == 0 || !inCharSet(line[n-1], ident) || n > 1 && line[n-2] == '\\') && (end == len(line) || !inCharSet(line[end], ident)) {
			return true
		}
		line = line[:n]
	}
}

// isPasswordFlag reports whether the argument at i is a flag of the command whose next argument is a
// password.
func isPasswordFlag(args []string, i int) bool {
	return len(args[i]) == 2 && args[i][0] == '-' && slices.ContainsFunc(rules.flags, func(r passwordFlagRule) bool {
		return r.apart && r.flag == args[i][1] && slices.Contains(args[:i], r.command)
	})
}

// findFlagPassword adds the password after the short flag at i, and returns the offset after it, or 0.
func (f *credentialFinder) findFlagPassword(t []byte, i int) int {
	at := flagPasswordStart(t, i)
	if at == 0 || at == len(t) {
		return 0
	}
	v := parseValue(t, at)
	value := t[v.from:v.to]
	if len(value) < 4 || value[0] == '$' || value[0] == '-' || isPlaceholder(value) || len(value) < 6 && runEnd(value, 0, digit) == len(value) {
		return 0
	}
	return f.addNamedValue(t, v.from, v.fullEnd(t), "password")
}
