package ops

import (
	"context"
	"io"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream/process"
)

// LogQuery selects the last lines of a server's log.
type LogQuery struct {
	ServerRef
	Lines int `query:"lines" min:"1" max:"10000" default:"100" doc:"The maximum number of lines, from the end of the log."`
}

// LogTail contains the last lines of a server's log.
type LogTail struct {
	Server  string    `json:"server"`
	Lines   []string  `json:"lines" doc:"The lines for display, oldest first. Lines that do not come from stderr are marked."`
	Entries []LogLine `json:"entries" doc:"The same lines with their details."`
}

// LogLine is a line of a server's log.
type LogLine struct {
	At     *time.Time `json:"at,omitempty" doc:"The time at which the line was complete. Absent for an incomplete line, and for lines of old versions that stored no times."`
	Stream string     `json:"stream" enum:"stderr,stdout,mcpproxy" doc:"stderr: output of the server on stderr. stdout: its output on stdout that is not a message. mcpproxy: a note of MCPProxy."`
	Text   string     `json:"text"`
}

// ServerLogs returns the last lines of a server's log.
func (i *Inspector) ServerLogs(_ context.Context, _ Caller, in LogQuery) (LogTail, error) {
	if _, err := i.gateway.findServer(in.Name); err != nil {
		return LogTail{}, err
	}
	last, err := i.upstreams.LogTail(in.Name, in.Lines)
	if err != nil {
		return LogTail{}, err
	}
	tail := LogTail{Server: in.Name, Lines: make([]string, len(last)), Entries: make([]LogLine, len(last))}
	for n := range last {
		tail.Entries[n] = toMaskedLogLine(&last[n])
		tail.Lines[n] = last[n].String()
	}
	return tail, nil
}

// toMaskedLogLine converts a log line and masks secrets.
func toMaskedLogLine(l *process.LogLine) LogLine {
	l.Text = redact.Text(l.Text)
	return LogLine{At: timeOrNil(l.At), Stream: string(l.Stream), Text: l.Text}
}

// The poll interval of a followed log, and the interval of pings on an idle stream.
const (
	followInterval = 250 * time.Millisecond
	pingInterval   = 15 * time.Second
)

// FollowLogs streams the last lines of a server's log, then new lines, as events. The stream ends when the server is
// removed.
func (i *Inspector) FollowLogs(_ context.Context, _ Caller, in LogQuery) (StreamFunc, error) {
	if _, err := i.gateway.findServer(in.Name); err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) error {
		select {
		case i.follows <- struct{}{}:
			defer func() { <-i.follows }()
		default:
			return problem.Newf(problem.Overloaded, "%d logs are being followed, which is the limit.", maxFollows).
				WithHint("Close a page that shows a log, or read its end: GET /servers/{name}/logs.")
		}
		log := i.upstreams.NewLogReader(in.Name)
		lines, err := log.ReadLast(in.Lines)
		if err == nil {
			err = writeLogEvents(w, lines)
		}
		look := time.NewTicker(followInterval)
		defer look.Stop()
		for wrote := time.Now(); err == nil; {
			select {
			case <-ctx.Done():
				return nil
			case <-i.closed:
				return nil
			case <-look.C:
			}
			_, gone := i.gateway.findServer(in.Name)
			for {
				if lines, err = log.ReadNew(); err != nil || len(lines) == 0 {
					break
				}
				wrote = time.Now()
				if err = writeLogEvents(w, lines); err != nil || ctx.Err() != nil {
					return err
				}
			}
			if err == nil && gone != nil {
				return nil
			}
			if err == nil && time.Since(wrote) >= pingInterval {
				wrote, err = time.Now(), writeLogEvents(w, nil)
			}
		}
		return err
	}, nil
}

// writeLogEvents writes an event for each line, or a ping comment if there are no lines.
func writeLogEvents(w io.Writer, lines []process.LogLine) error {
	var out []byte
	for n := range lines {
		data, err := wirejson.MarshalWithoutHTMLEscape(toMaskedLogLine(&lines[n]))
		if err != nil {
			return err
		}
		out = append(append(append(out, "data: "...), data...), "\n\n"...)
	}
	if out == nil {
		out = []byte(": ping\n\n")
	}
	_, err := w.Write(out)
	return err
}
