package transport

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
)

// stdClient uses net/http, for TLS, HTTP/2 and proxies.
type stdClient struct {
	transport *http.Transport
}

func newStdClient(rule dialpolicy.Policy) *stdClient {
	return &stdClient{&http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            rule.Dial,
		TLSHandshakeTimeout:    15 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleConnTime,
		MaxResponseHeaderBytes: maxHead,
		ForceAttemptHTTP2:      true,
	}}
}

// Do sends the request. net/http repeats a POST only if the server has certainly not executed it.
func (c *stdClient) Do(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	req := (&http.Request{Method: r.Method, URL: r.Head.url, Host: r.Head.fields.Get("Host"),
		Header: r.Head.fields, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if len(r.Headers) > 0 || r.auth != "" {
		req.Header = maps.Clone(r.Head.fields) // Set replaces the value of a field
		for _, f := range r.Headers {
			req.Header.Set(f.Name, f.Value)
		}
		if r.auth != "" {
			req.Header.Set("Authorization", r.auth)
		}
	}
	if r.Body != nil {
		body := bytes.Clone(r.Body) // net/http may read it after RoundTrip returns
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(body))
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		if hasContextEnded(ctx) {
			err = ctx.Err()
		}
		if !connected {
			return nil, newNotSentError(err)
		}
		return nil, err
	}
	a := &HTTPResponse{Status: resp.StatusCode, length: resp.ContentLength, Body: resp.Body}
	for name, values := range resp.Header {
		for _, v := range values {
			a.addHeader(appendLower(make([]byte, 0, maxFieldName), []byte(name)), []byte(name), []byte(v), r.KeepHeaders)
		}
	}
	return a.withDecompressedBody(), nil
}

func (c *stdClient) CloseIdle(time.Time) {} // IdleConnTimeout closes idle connections

func (c *stdClient) Close() { c.transport.CloseIdleConnections() }
