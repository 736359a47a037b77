package classify

import (
	"strings"

	"mcpproxy/internal/gate/policy"
)

// verdict is the effect of arguments and the deciding word. The zero value means that nothing was classified.
type verdict struct {
	Operation policy.Operation
	Word      string
	// Unread reports whether the arguments could not be parsed completely. In that case the operation is a minimum.
	Unread bool
}

// unparseableVerdict returns the verdict for a text that cannot be parsed. The text may do anything, so it is at
// least a write.
func unparseableVerdict(why string) verdict {
	return verdict{Operation: policy.Write, Word: why, Unread: true}
}

// readVerdict is the verdict for a read.
var readVerdict = verdict{Operation: policy.Read}

// worseOf returns the worse of two verdicts, and the first one if they are equal.
func (v verdict) worseOf(other verdict) verdict {
	unread := v.Unread || other.Unread
	if other.Operation > v.Operation {
		v = other
	}
	v.Unread = unread
	return v
}

// maxText is the longest text that is parsed, in bytes.
const maxText = 64 << 10

// tooLong is the verdict for a longer text.
var tooLong = verdict{Operation: policy.Destructive, Word: "longer than 64 KB", Unread: true}

// writeVerdict returns the verdict for a write with the deciding word.
func writeVerdict(word string) verdict {
	return verdict{Operation: policy.Write, Word: clipWord(word)}
}

// destructiveVerdict returns the verdict for a destructive effect with the deciding word.
func destructiveVerdict(word string) verdict {
	return verdict{Operation: policy.Destructive, Word: clipWord(word)}
}

// clipWord limits the shown text of a caller.
func clipWord(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	if s = strings.ToValidUTF8(s, ""); s == "" { // the name of a command can be empty or invalid
		return "''"
	}
	return s
}
