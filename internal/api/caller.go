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

// requestIDHeader is taken over into the record, so that a caller can find it.
const requestIDHeader = "X-Request-Id"

// maxRequestID bounds the id of a request that comes from outside.
const maxRequestID = 128

// caller is who asks, as the record keeps it. The source is as the admin says.
func caller(r *http.Request, a auth.Actor) ops.Caller {
	c := ops.Caller{Actor: a, Source: activity.SourceREST, RequestID: r.Header.Get(requestIDHeader)}
	c.Origin = auth.Origin(r)
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
		c.Source = activity.SourceUI // and no client: every browser says that it is Mozilla
		return c
	}
	product, _, _ := strings.Cut(r.UserAgent(), " ")
	c.ClientName, c.ClientVersion, _ = strings.Cut(problem.Brief(product), "/")
	return c
}
