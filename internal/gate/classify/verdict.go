package classify

import (
	"strings"

	"mcpproxy/internal/gate/policy"
)

// verdict is what arguments do, and the word that decides it. The zero value says
// that nothing was judged.
type verdict struct {
	Operation policy.Operation
	Word      string
	// Unread says that the arguments could not be read to their end: what they do is
	// only the least that they may do.
	Unread bool
}

// unread is for what cannot be understood: it may do anything, and never counts as
// less than a write.
func unread(why string) verdict { return verdict{Operation: policy.Write, Word: why, Unread: true} }

// reading is for what only reads.
var reading = verdict{Operation: policy.Read}

// worse is the worse of two; of equals the first.
func (v verdict) worse(other verdict) verdict {
	unread := v.Unread || other.Unread
	if other.Operation > v.Operation {
		v = other
	}
	v.Unread = unread
	return v
}

// maxText is the longest text that is read; a longer one is worth its worst.
const maxText = 64 << 10

// tooLong is for a text that is longer.
var tooLong = verdict{Operation: policy.Destructive, Word: "longer than 64 KB", Unread: true}

// write is for what is a write, with the word that decides.
func write(word string) verdict {
	return verdict{Operation: policy.Write, Word: clipWord(word)}
}

// clipWord bounds what is said of a caller's text.
func clipWord(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	if s = strings.ToValidUTF8(s, ""); s == "" { // the name of a command can be empty, or no text
		return "''"
	}
	return s
}
