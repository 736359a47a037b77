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

// requestIDHeader is copied into the record, so that a client can find the record of its request.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the maximum length of a request ID that a client sends.
const maxRequestID = 128

// newCaller returns the caller of a request, as recorded in the activity log. Only an admin can set the source.
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
		c.Source = activity.SourceUI // no client name, because the user agent of every browser begins with Mozilla
		return c
	}
	product, _, _ := strings.Cut(r.UserAgent(), " ")
	c.ClientName, c.ClientVersion, _ = strings.Cut(problem.ClipName(product), "/")
	return c
}
