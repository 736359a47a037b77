package api

import (
	"net/url"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// normalizeAndCheckActivityFilter splits a tool id into server and tool, and rejects parameters that exclude each
// other.
func normalizeAndCheckActivityFilter(f *activity.Filter, given url.Values) error {
	// If the filter names a server, the tool is a bare name, which may contain a colon.
	if len(f.Tools) == 1 && len(f.Servers) == 0 {
		if id, err := tool.ParseID(f.Tools[0]); err == nil {
			f.Servers, f.Tools = []string{id.Server}, []string{id.Tool}
		}
	}
	if f.Cursor != "" && given.Has("offset") {
		return newInvalidValueError("offset", given.Get("offset"), "left out when cursor is given")
	}
	if given.Has("start_time") && given.Has("end_time") && f.Until.Before(f.Since) {
		return newInvalidValueError("end_time", given.Get("end_time"), "a time after start_time")
	}
	return nil
}
