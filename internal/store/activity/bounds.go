package activity

import (
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
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
// masks the secrets in it. Names are masked, too: a model can put a token
// anywhere.
func bound(r *Record, maxResponse int) {
	r.ServerName = maskedText(r.ServerName, maxServerName)
	for _, s := range []*string{
		&r.ToolName, &r.SessionID, &r.RequestID, &r.ParentID, &r.Actor, &r.ClientName, &r.ClientVersion,
		&r.Metadata.Action,
	} {
		*s = maskedText(*s, maxName)
	}
	r.Metadata.ToolVariant, r.Metadata.ErrorCode = clip(r.Metadata.ToolVariant, maxName), clip(r.Metadata.ErrorCode, maxName)
	r.ErrorMessage = maskedText(r.ErrorMessage, maxMessage)
	r.Metadata.Detail = maskedText(r.Metadata.Detail, maxResponse)
	r.Metadata.Warnings = slices.Clone(r.Metadata.Warnings[:min(len(r.Metadata.Warnings), maxWarnings)])
	for i, w := range r.Metadata.Warnings {
		r.Metadata.Warnings[i] = maskedText(w, maxMessage)
	}
	if in := r.Metadata.Intent; in != nil {
		changed := Intent{
			OperationType: maskedText(in.OperationType, maxName), DataSensitivity: maskedText(in.DataSensitivity, maxName),
			Reason: maskedText(in.Reason, maxMessage),
		}
		if len(in.Declared) > 0 {
			kept, _ := keptJSON(in.Declared, maxMessage)
			changed.Declared = asJSON(kept)
		}
		if changed.OperationType != in.OperationType || changed.DataSensitivity != in.DataSensitivity || changed.Reason != in.Reason || changed.Declared != nil {
			r.Metadata.Intent = &changed
		}
	}
	if s := r.Metadata.Search; s != nil {
		r.Metadata.Search = &Search{Query: maskedText(s.Query, maxQuery), Rank: s.Rank}
	}
	if len(r.Arguments) > 0 {
		size := int64(len(r.Arguments))
		var cut bool
		if r.Arguments, cut = keptJSON(r.Arguments, maxResponse); cut {
			r.ArgumentsTruncated = true
			r.RequestBytes = max(r.RequestBytes, size)
		}
	}
	if len(r.Response) > 0 {
		var cut bool
		r.Response, cut = keptJSON(r.Response, maxResponse)
		r.ResponseTruncated = r.ResponseTruncated || cut
	}
}

// masked returns a filter that finds what it names as records hold it.
func (f Filter) masked() Filter {
	names := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, maskedText(s, maxName))
		}
		return out
	}
	f.Servers, f.Tools, f.Actors, f.Clients = names(f.Servers), names(f.Tools), names(f.Actors), names(f.Clients)
	f.SessionID, f.RequestID = maskedText(f.SessionID, maxName), maskedText(f.RequestID, maxName)
	return f
}

// maskedText is the beginning of s without secrets. A secret that the cut would
// split is masked, too.
func maskedText(s string, most int) string {
	if s == "" {
		return s
	}
	if len(s) > most {
		s = clip(s, most+cutMargin)
	}
	if s = redact.Text(s); len(s) > most {
		s = clip(s, most)
	}
	return s
}

// clip returns at most the first most bytes of s. What is cut is a copy, which
// does not keep the rest in memory.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(wirejson.ClipText(s, most))
}
