package mcpserver

import (
	"context"
	"io"
	"net/http"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

type ctxT = context.Context

// openStream sends a request whose answer is a stream that is read event by
// event.
type openStream struct {
	h      *harness
	res    *http.Response
	events *wirejson.SSEReader
	cancel context.CancelFunc
}

func (h *harness) openStream(method string, header map[string]string, body string) *openStream {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, method, h.http.URL, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = []string{v}
	}
	res, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	st := &openStream{h, res, wirejson.NewSSEReader(res.Body, 1<<20), cancel}
	h.t.Cleanup(st.close)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		rest, _ := io.ReadAll(res.Body)
		h.t.Fatalf("%d %s %s", res.StatusCode, res.Header, rest)
	}
	return st
}

// next returns the data of the next event, "" at the end.
func (st *openStream) next() string {
	st.h.t.Helper()
	e, err := st.events.Next()
	if err != nil {
		return ""
	}
	return string(e.Data)
}

func (st *openStream) close() {
	st.cancel()
	_ = st.res.Body.Close()
}
