package redact

import (
	"bytes"
	"slices"
)

// Passwords behind short flags, which only the command tells: docker login -p.

// afterFlag returns where the password of a command stands, behind the short flag
// at i, or 0. Whether it is one is not looked at.
func afterFlag(t []byte, i int) int {
	const farthest = 256
	if i+3 >= len(t) || !has(t[i+1], lower|upper) || i > 0 && !has(t[i-1], space|quoted) && (i < 2 || t[i-2] != '\\') {
		return 0
	}
	apart := !has(t[i+2], ident)
	for _, r := range known.flags {
		if r.flag == t[i+1] && (apart && r.apart || !apart && r.attached) && names(lineBefore(t, max(0, i-farthest), i), r.command) {
			return skipSpace(t, i+2)
		}
	}
	return 0
}

// lineBefore returns what stands before i on its line, which goes on behind a
// backslash.
func lineBefore(t []byte, low, i int) []byte {
	from := i
	for from > low && (t[from-1] != '\n' || from > low+1 && t[from-2] == '\\') {
		from--
	}
	return t[from:i]
}

// names reports whether a line holds a command, as a word of its own.
func names(line []byte, command string) bool {
	for {
		n := bytes.LastIndex(line, []byte(command))
		if n < 0 {
			return false
		}
		end := n + len(command)
		if (n == 0 || !has(line[n-1], ident) || n > 1 && line[n-2] == '\\') && (end == len(line) || !has(line[end], ident)) {
			return true
		}
		line = line[:n]
	}
}

// takesPassword reports whether the argument at i of a command is the flag that a
// password follows.
func takesPassword(args []string, i int) bool {
	return len(args[i]) == 2 && args[i][0] == '-' && slices.ContainsFunc(known.flags, func(r flagRule) bool {
		return r.apart && r.flag == args[i][1] && slices.Contains(args[:i], r.command)
	})
}

// atFlag masks the password behind the short flag at i, and returns the place
// behind it, or 0.
func (f *finder) atFlag(t []byte, i int) int {
	at := afterFlag(t, i)
	if at == 0 || at == len(t) {
		return 0
	}
	v := valueAt(t, at)
	value := t[v.from:v.to]
	if len(value) < 4 || value[0] == '$' || value[0] == '-' || placeholder(value) || len(value) < 6 && runEnd(value, 0, digit) == len(value) {
		return 0
	}
	return f.addValue(t, v.from, v.whole(t), "password")
}
