package mcptest_test

import (
	"context"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"mcpproxy/internal/testutil/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOfficialClient checks that the client of the official SDK accepts the fake server.
func TestOfficialClient(t *testing.T) {
	transports := map[string]func(t *testing.T) mcp.Transport{
		"json": func(t *testing.T) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)).URL}
		},
		"events": func(t *testing.T) mcp.Transport {
			s := mcptest.New(mcptest.Options{Events: true, PageSize: 4}, mcptest.SampleTools()...)
			return &mcp.StreamableClientTransport{Endpoint: mcptest.Serve(t, s).URL}
		},
		"stdio": func(t *testing.T) mcp.Transport {
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- mcptest.New(mcptest.Options{}, mcptest.SampleTools()...).ServeStdio(context.Background(), in, out)
				out.Close()
			}()
			t.Cleanup(func() {
				toServer.Close()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			return &mcp.IOTransport{Reader: fromServer, Writer: toServer}
		},
	}
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{}, 10)
			progress := make(chan float64, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			session, err := client.Connect(t.Context(), transport(t), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			n := 0
			for _, err := range session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != len(mcptest.SampleTools()) {
				t.Errorf("%d tools", n)
			}
			p := &mcp.CallToolParams{Name: "notify", Arguments: map[string]any{"n": 2}}
			p.SetProgressToken("token")
			if _, err := session.CallTool(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if a, b := <-progress, <-progress; a != 0 || b != 1 {
				t.Errorf("progress %v, %v", a, b)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "storm", Arguments: map[string]any{"n": 1}}); err != nil {
				t.Fatal(err)
			}
			<-changed
		})
	}
}
