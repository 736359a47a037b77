package activity

import (
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// Limits of the texts in a record that callers and servers choose. Names also have limits because they are keys of the
// store's hourly counts. Without limits, a few refused calls with huge names could fill the whole log.
const (
	maxServerName = 64
	maxName       = 256
	maxMessage    = 4 << 10
	maxWarnings   = 32
	maxQuery      = 512
)

// maskAndLimitRecord masks the secrets in all texts of r that callers and servers choose, and cuts these texts to their
// limits. r must be a copy of the caller's record. Names are masked too, because a model may write a token in any
// field.
func maskAndLimitRecord(r *Record, maxResponse int) {
	r.ServerName = maskAndClip(r.ServerName, maxServerName)
	for _, s := range []*string{
		&r.ToolName, &r.SessionID, &r.RequestID, &r.ParentID, &r.Actor, &r.ClientName, &r.ClientVersion,
		&r.Metadata.Action,
	} {
		*s = maskAndClip(*s, maxName)
	}
	r.Metadata.ToolVariant, r.Metadata.ErrorCode = clipText(r.Metadata.ToolVariant, maxName), clipText(r.Metadata.ErrorCode, maxName)
	r.ErrorMessage = maskAndClip(r.ErrorMessage, maxMessage)
	r.Metadata.Detail = maskAndClip(r.Metadata.Detail, maxResponse)
	r.Metadata.Warnings = slices.Clone(r.Metadata.Warnings[:min(len(r.Metadata.Warnings), maxWarnings)])
	for i, w := range r.Metadata.Warnings {
		r.Metadata.Warnings[i] = maskAndClip(w, maxMessage)
	}
	if in := r.Metadata.Intent; in != nil {
		changed := Intent{
			OperationType: maskAndClip(in.OperationType, maxName), DataSensitivity: maskAndClip(in.DataSensitivity, maxName),
			Reason: maskAndClip(in.Reason, maxMessage),
		}
		if len(in.Declared) > 0 {
			kept, _ := MaskAndCutJSON(in.Declared, maxMessage)
			changed.Declared = toValidJSON(kept)
		}
		if changed.OperationType != in.OperationType || changed.DataSensitivity != in.DataSensitivity || changed.Reason != in.Reason || changed.Declared != nil {
			r.Metadata.Intent = &changed
		}
	}
	if s := r.Metadata.Search; s != nil {
		r.Metadata.Search = &Search{Query: maskAndClip(s.Query, maxQuery), Rank: s.Rank}
	}
	if len(r.Arguments) > 0 {
		size := int64(len(r.Arguments))
		var cut bool
		if r.Arguments, cut = MaskAndCutJSON(r.Arguments, maxResponse); cut {
			r.ArgumentsTruncated = true
			r.RequestBytes = max(r.RequestBytes, size)
		}
	}
	if len(r.Response) > 0 {
		var cut bool
		r.Response, cut = MaskAndCutJSON(r.Response, maxResponse)
		r.ResponseTruncated = r.ResponseTruncated || cut
	}
}

// withMaskedNames returns the filter with masked names, because records store names masked.
func (f Filter) withMaskedNames() Filter {
	names := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, maskAndClip(s, maxName))
		}
		return out
	}
	f.Servers, f.Tools, f.Actors, f.Clients = names(f.Servers), names(f.Tools), names(f.Actors), names(f.Clients)
	f.SessionID, f.RequestID = maskAndClip(f.SessionID, maxName), maskAndClip(f.RequestID, maxName)
	return f
}

// maskAndClip returns at most the first most bytes of s, with masked secrets. It also masks a secret that the cut would
// split.
func maskAndClip(s string, most int) string {
	if s == "" {
		return s
	}
	if len(s) > most {
		s = clipText(s, most+cutMargin)
	}
	if s = redact.Text(s); len(s) > most {
		s = clipText(s, most)
	}
	return s
}

// clipText returns at most the first most bytes of s. If it cuts the text, it returns a copy, so that the rest does not
// stay in memory.
func clipText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(wirejson.ClipText(s, most))
}
