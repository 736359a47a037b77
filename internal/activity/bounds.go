package activity

import (
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/redact"
)

// What a record keeps of the texts that callers and servers choose. Names are
// keys of the store's roll-up, too: without a limit, a few refused calls with
// huge names would take the room of the whole log.
const (
	maxServerName = 64
	maxName       = 256
	maxMessage    = 4 << 10
	maxWarnings   = 32
	maxQuery      = 512
)

// bound cuts what callers and servers chose in r, which is a copy of theirs, and
// masks the free text in it.
func (l *Log) bound(r *Record) {
	r.ServerName = clip(r.ServerName, maxServerName)
	for _, s := range []*string{
		&r.ToolName, &r.SessionID, &r.RequestID, &r.ParentID, &r.Actor, &r.ClientName, &r.ClientVersion,
		&r.Metadata.ToolVariant, &r.Metadata.ErrorCode, &r.Metadata.Action,
	} {
		*s = clip(*s, maxName)
	}
	r.ErrorMessage = maskedText(r.ErrorMessage, maxMessage)
	r.Metadata.Detail = maskedText(r.Metadata.Detail, l.maxResponse)
	r.Metadata.Warnings = boundWarnings(r.Metadata.Warnings)
	if in := r.Metadata.Intent; in != nil {
		changed := Intent{
			OperationType: clip(in.OperationType, maxName), DataSensitivity: clip(in.DataSensitivity, maxName),
			Reason: maskedText(in.Reason, maxMessage),
		}
		if changed != *in {
			r.Metadata.Intent = &changed
		}
	}
	if s := r.Metadata.Search; s != nil {
		r.Metadata.Search = &Search{Query: maskedText(s.Query, maxQuery), Rank: s.Rank}
	}
	if len(r.Arguments) > 0 {
		size := int64(len(r.Arguments))
		var cut bool
		if r.Arguments, cut = keptJSON(r.Arguments, l.maxResponse); cut {
			r.ArgumentsTruncated = true
			r.RequestBytes = max(r.RequestBytes, size)
		}
	}
	if len(r.Response) > 0 {
		var cut bool
		r.Response, cut = keptJSON(r.Response, l.maxResponse)
		r.ResponseTruncated = r.ResponseTruncated || cut
	}
}

// boundOutcome is bound for the texts of an outcome.
func boundOutcome(o *Outcome) {
	o.ErrorMessage = maskedText(o.ErrorMessage, maxMessage)
	o.ErrorCode = clip(o.ErrorCode, maxName)
	o.Warnings = boundWarnings(o.Warnings)
}

func boundWarnings(warnings []string) []string {
	fits := len(warnings) <= maxWarnings
	for _, w := range warnings {
		fits = fits && len(w) <= maxMessage
	}
	if fits {
		return warnings
	}
	out := make([]string, min(len(warnings), maxWarnings))
	for i := range out {
		out[i] = clip(warnings[i], maxMessage)
	}
	return out
}

// maskedText is the beginning of s without secrets. A secret that the cut would
// split is masked, too.
func maskedText(s string, most int) string {
	if s == "" {
		return s
	}
	return clip(redact.Text(clip(s, most+cutMargin)), most)
}

// clip gives at most the first most bytes of s, whole characters. What is cut is
// a copy, which does not keep the rest in memory.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for i := 1; i < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	return strings.Clone(s[:end])
}
