//go:build unix

package compat

import (
	"encoding/json"
	"fmt"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/cputime"
	"mcpproxy/internal/testutil/mcptest"
)

// BenchmarkCall measures a small call with 1, 8 and 64 concurrent callers. cpu-µs/op is the processor time of this process:
// for stdio without the server, for HTTP including it.
func BenchmarkCall(b *testing.B) {
	f := newFixture(b)
	f.ApplySpecs([]Spec{
		stdioSpec(b, "stdio", "zoo"),
		{Name: "http", Transport: HTTP, URL: mcptest.Serve(b, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)).URL},
		{Name: "events", Transport: HTTP, URL: mcptest.Serve(b, mcptest.New(mcptest.Options{Events: true}, mcptest.SampleTools()...)).URL},
	})
	args := json.RawMessage(`{"message":"` + strings.Repeat("x", 400) + `"}`)
	judged := session.NewToolCallPermit("echo", nil, func() error { return nil })
	for _, server := range []string{"stdio", "http", "events"} {
		f.untilReady(b, server, 0)
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", server, callers), func(b *testing.B) {
				b.ReportAllocs()
				used, surface := cputime.Process(), f.ServerEndpoint(server)
				share(b, callers, func() error {
					r := session.Request{Method: mcp.CallTool, Call: &session.ToolCall{Tool: "echo", Arguments: args}, Permit: judged}
					_, err := surface.Do(b.Context(), &r)
					return err
				})
				b.ReportMetric(float64((cputime.Process()-used).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// share does b.N calls from so many goroutines.
func share(b *testing.B, callers int, call func() error) {
	next := make(chan struct{}, b.N)
	for range b.N {
		next <- struct{}{}
	}
	close(next)
	done := make(chan error, callers)
	b.ResetTimer()
	for range callers {
		go func() {
			for range next {
				if err := call(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
