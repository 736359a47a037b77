package transport

import (
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// modernHeaders returns the headers of a modern request that repeat its body.
func modernHeaders(r *session.Request) []mcp.Header {
	fields := []mcp.Header{{Name: mcp.HeaderMethod, Value: r.Method}}
	name, arguments := targetNameAndArguments(r)
	if name != "" {
		fields = append(fields, mcp.Header{Name: mcp.HeaderName, Value: mcp.EncodeHeaderValue(name)})
	}
	if r.Method == mcp.CallTool {
		fields = append(fields, mcp.ParamHeaders(r.Permit.ListedDefinition(), arguments)...)
	}
	return fields
}

// targetNameAndArguments returns the name of the target of a request, and the arguments of a call.
func targetNameAndArguments(r *session.Request) (name string, arguments json.RawMessage) {
	switch {
	case r.Call != nil:
		return r.Call.Tool, r.Call.Arguments
	case r.Method == mcp.ReadResource:
		name, _ = wirejson.String(wirejson.Find(r.Params, "uri"))
	case r.Method == mcp.CallTool, r.Method == mcp.GetPrompt:
		name, _ = wirejson.String(wirejson.Find(r.Params, "name"))
		arguments = wirejson.Find(r.Params, "arguments")
	}
	return name, arguments
}
