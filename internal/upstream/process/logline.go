package process

import (
	"strings"
	"time"
)

// Stream is where a line of a log comes from.
type Stream string

// The streams.
const (
	Stderr   Stream = "stderr"
	Stdout   Stream = "stdout"   // what is no message
	Remarked Stream = "mcpproxy" // what we say ourselves
)

// LogLine is a line of a server's log. Older versions kept no time of what servers
// write.
type LogLine struct {
	At     time.Time // when the line was complete, to the millisecond; zero = not known
	Stream Stream
	Text   string
}

// String returns the line as it is shown without its time: a remark has it all the
// same.
func (l LogLine) String() string {
	switch {
	case l.Stream == Stderr:
		return l.Text
	case l.Stream == Remarked && !l.At.IsZero():
		return l.At.Format(time.RFC3339) + " [" + string(l.Stream) + "] " + l.Text
	}
	return "[" + string(l.Stream) + "] " + l.Text
}

// stampForm is how a time stands before a line.
const stampForm = "2006-01-02T15:04:05.000Z"

// stampSize is the most that stands before a line.
const stampSize = len(stampForm + " [mcpproxy] ")

// stamped returns lines as they stand in the file: each behind its time and its
// stream. The last one ends, too.
func stamped(at time.Time, stream Stream, text string) string {
	before := at.UTC().Format(stampForm) + " [" + string(stream) + "] "
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(before)
		out.WriteString(line)
	}
	if !strings.HasSuffix(text, "\n") {
		out.WriteByte('\n')
	}
	return out.String()
}

// parseLine reads a line of the file. In what older versions wrote only remarks
// have a time, and a line of stderr stands by itself.
func parseLine(line string) LogLine {
	first, rest, _ := strings.Cut(line, " ")
	if at, err := time.Parse(time.RFC3339, first); err == nil {
		if stream, text, ok := cutStream(rest); ok {
			return LogLine{at, stream, text}
		}
	}
	if stream, text, ok := cutStream(line); ok {
		return LogLine{Stream: stream, Text: text}
	}
	return LogLine{Stream: Stderr, Text: line}
}

func cutStream(line string) (Stream, string, bool) {
	for _, s := range [...]Stream{Stderr, Stdout, Remarked} {
		if text, ok := strings.CutPrefix(line, "["+string(s)+"] "); ok {
			return s, text, true
		}
	}
	return "", "", false
}
