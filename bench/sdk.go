package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveUpstreamSDK serves the echo tool with the official Go SDK. It shows the cost of a call to a typical server, where the
// bare handler of serveUpstreamHTTP is the least that a server can cost. It is stateless, so that the direct call needs no
// session. It speaks only the protocol of the direct call: with the modern protocol, which MCPProxy would choose, this server
// costs half as much again.
func serveUpstreamSDK() error {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"},
		&mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-06-18", "2025-03-26"}})
	var definition mcp.Tool
	if err := json.Unmarshal([]byte(echoTool), &definition); err != nil {
		return err
	}
	server.AddTool(&definition, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: arguments.Text}}}, nil
	})
	return listenAndServe(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}))
}
