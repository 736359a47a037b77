package tool

import (
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// AppLink is what a definition declares for MCP Apps.
type AppLink struct {
	URI string // of the user interface that shows results of the tool; "" if there is none
	// HiddenFromModel reports that the tool is not for a model, only for user interfaces of the same server.
	HiddenFromModel bool
	// HiddenFromApps reports that user interfaces may not call the tool.
	HiddenFromApps bool
}

// maxAppURI limits the URI of a user interface, in bytes.
const maxAppURI = 2 << 10

// deprecatedAppURIMember is the former place of the URI in _meta.
const deprecatedAppURIMember = "ui/resourceUri"

// parseAppLink reads the _meta of a definition. It ignores a URI that is not one of a user interface.
func parseAppLink(meta []byte) AppLink {
	ui := wirejson.Find(meta, "ui")
	var l AppLink
	if l.URI = appURIOrEmpty(wirejson.Find(ui, "resourceUri")); l.URI == "" {
		l.URI = appURIOrEmpty(wirejson.Find(meta, deprecatedAppURIMember))
	}
	if visible := wirejson.Find(ui, "visibility"); wirejson.Kind(visible) == '[' {
		l.HiddenFromModel, l.HiddenFromApps = true, true
		_ = wirejson.EachElement(visible, func(value []byte) error {
			switch text, _ := wirejson.String(value); text {
			case "model":
				l.HiddenFromModel = false
			case "app":
				l.HiddenFromApps = false
			}
			return nil
		})
	}
	return l
}

// appURIOrEmpty returns the URI of a user interface, or "".
func appURIOrEmpty(value []byte) string {
	uri, _ := wirejson.String(value)
	if !mcp.IsAppURI(uri) || len(uri) > maxAppURI {
		return ""
	}
	return uri
}

// ResultAppURI returns the URI of the user interface that a result names in its _meta, or "".
func ResultAppURI(result json.RawMessage) string {
	return parseAppLink(wirejson.Find(result, "_meta")).URI
}

// ReplaceAppURI sets the URI of the user interface in the _meta of a definition or result.
func ReplaceAppURI(raw json.RawMessage, uri string) json.RawMessage {
	value, meta := wirejson.AppendString(nil, uri), objectOrEmpty(wirejson.Find(raw, "_meta"))
	meta = wirejson.SetMember(meta, "ui", wirejson.SetMember(objectOrEmpty(wirejson.Find(meta, "ui")), "resourceUri", value))
	if wirejson.Find(meta, deprecatedAppURIMember) != nil {
		meta = wirejson.SetMember(meta, deprecatedAppURIMember, value)
	}
	return wirejson.SetMember(raw, "_meta", meta)
}

// objectOrEmpty returns an object, or {} for any other value.
func objectOrEmpty(value []byte) json.RawMessage {
	if wirejson.Kind(value) != '{' {
		return json.RawMessage("{}")
	}
	return value
}
