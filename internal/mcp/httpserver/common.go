package httpserver

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a Listener.
type Options struct {
	Handler http.Handler
	Plain   func(path string) bool // the paths that this package serves
	// Base returns the base context of all requests.
	Base       func(net.Listener) context.Context
	HeaderTime time.Duration // limit for the head of a request, from its first byte
	BodyTime   time.Duration // limit for the body of a request, from the end of its head
	IdleTime   time.Duration // limit between two requests
	MaxConns   int           // limit of connections, including net/http's; above it new ones get 503 if all are busy
	// TLS makes every connection use TLS. nil means clear text. TLSFailed is called for each failed handshake.
	TLS       *tls.Config
	TLSFailed func(remote string, err error)
	Logger    *slog.Logger
}

// listenerState is the shared state of the connections of a Listener.
type listenerState struct {
	Options
	*connRegistry
	handedOver chan net.Conn // connections for net/http
	ended      chan struct{} // closed by Close
	stopped    chan struct{} // closed when no more connections are handed over
	used       sync.Pool     // stores *readBuffers
	dateCache  atomic.Pointer[cachedDate]
}

func newListenerState(opt Options) *listenerState {
	return &listenerState{Options: opt, connRegistry: newConnRegistry(opt.MaxConns), handedOver: make(chan net.Conn), ended: make(chan struct{}), stopped: make(chan struct{})}
}

// passToNetHTTP passes a connection to net/http.
func (l *listenerState) passToNetHTTP(r *replayConn) {
	select {
	case l.handedOver <- r:
	case <-l.stopped:
		r.Close()
	}
}

// cachedDate is the Date header of one second.
type cachedDate struct {
	second int64
	text   string
}

// dateHeader returns the current Date header.
func (l *listenerState) dateHeader() string {
	now := time.Now()
	if d := l.dateCache.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &cachedDate{now.Unix(), now.UTC().Format(http.TimeFormat)}
	l.dateCache.Store(d)
	return d.text
}
