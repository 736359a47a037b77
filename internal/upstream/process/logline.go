package process

import (
	"strings"
	"time"
)

// Stream is the source of a line.
type Stream string

// The streams.
const (
	Stderr   Stream = "stderr"
	Stdout   Stream = "stdout"   // not a message
	Remarked Stream = "mcpproxy" // MCPProxy itself
)

// LogLine is a line of a server's log. Older versions stored no time for server output.
type LogLine struct {
	At     time.Time // when the line was complete, in milliseconds; zero = unknown
	Stream Stream
	Text   string
}

// String returns the line without its time, except for a remark.
func (l LogLine) String() string {
	switch {
	case l.Stream == Stderr:
		return l.Text
	case l.Stream == Remarked && !l.At.IsZero():
		return l.At.Format(time.RFC3339) + " [" + string(l.Stream) + "] " + l.Text
	}
	return "[" + string(l.Stream) + "] " + l.Text
}

// timestampLayout is the format of the time before a line.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// maxPrefix is the longest prefix of a line.
const maxPrefix = len(timestampLayout + " [mcpproxy] ")

// prefixLines returns lines as stored: each with time, stream and line end.
func prefixLines(at time.Time, stream Stream, text string) string {
	before := at.UTC().Format(timestampLayout) + " [" + string(stream) + "] "
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

// parseLogLine parses a line of the file. Older versions wrote a time only before remarks,
// and stderr without a prefix.
func parseLogLine(line string) LogLine {
	first, rest, _ := strings.Cut(line, " ")
	if at, err := time.Parse(time.RFC3339, first); err == nil {
		if stream, text, ok := cutStreamPrefix(rest); ok {
			return LogLine{at, stream, text}
		}
	}
	if stream, text, ok := cutStreamPrefix(line); ok {
		return LogLine{Stream: stream, Text: text}
	}
	return LogLine{Stream: Stderr, Text: line}
}

func cutStreamPrefix(line string) (Stream, string, bool) {
	for _, s := range [...]Stream{Stderr, Stdout, Remarked} {
		if text, ok := strings.CutPrefix(line, "["+string(s)+"] "); ok {
			return s, text, true
		}
	}
	return "", "", false
}
