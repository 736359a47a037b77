package api

import (
	"crypto/rand"
	"net/http"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// requestIDHeader is copied into the record, so that a client can find it.
const requestIDHeader = "X-Request-Id"

// maxRequestID limits the id of a request from a client.
const maxRequestID = 128

// newCaller returns the caller of a request for its record. Only an admin can set the source.
func newCaller(r *http.Request, a auth.Actor) ops.Caller {
	c := ops.Caller{Actor: a, Source: activity.SourceREST, RequestID: r.Header.Get(requestIDHeader)}
	c.Origin = auth.ConnectionAddress(r)
	switch said := activity.Source(r.Header.Get(SourceHeader)); said {
	case activity.SourceCLI, activity.SourceUI:
		if a.Kind == auth.Admin {
			c.Source = said
		}
	}
	if c.RequestID == "" || len(c.RequestID) > maxRequestID || !utf8.ValidString(c.RequestID) {
		c.RequestID = rand.Text()
	}
	if a.FromWebUI {
		c.Source = activity.SourceUI // and no client name: every browser calls itself Mozilla
		return c
	}
	product, _, _ := strings.Cut(r.UserAgent(), " ")
	c.ClientName, c.ClientVersion, _ = strings.Cut(problem.ClipName(product), "/")
	return c
}
