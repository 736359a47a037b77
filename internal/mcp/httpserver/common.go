package httpserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options are how plain requests are answered.
type Options struct {
	Handler http.Handler
	Plain   func(path string) bool // the paths that are served here
	// Base returns the context that those of all requests descend from.
	Base       func(net.Listener) context.Context
	HeaderTime time.Duration // for the head of a request, from its first byte on
	BodyTime   time.Duration // for the body of a request, from the end of its head on
	IdleTime   time.Duration // between two requests of a connection
	MaxConns   int           // open at once, those at net/http too; who comes when all are being worked on is told so
	Logger     *slog.Logger
}

// common is what the connections of a Listener have in common.
type common struct {
	Options
	*registry
	other chan net.Conn // to net/http
	ended chan struct{} // closed by Close
	over  chan struct{} // closed when nothing is handed over any more
	used  sync.Pool     // of *scratch
	dated atomic.Pointer[dated]
}

func newCommon(opt Options) *common {
	return &common{Options: opt, registry: newRegistry(opt.MaxConns), other: make(chan net.Conn), ended: make(chan struct{}), over: make(chan struct{})}
}

// handOver passes a connection on to net/http.
func (l *common) handOver(r *replayed) {
	select {
	case l.other <- r:
	case <-l.over:
		r.Close()
	}
}

// dated is the Date of a second.
type dated struct {
	second int64
	text   string
}

// date is the value of the Date header now.
func (l *common) date() string {
	now := time.Now()
	if d := l.dated.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &dated{now.Unix(), now.UTC().Format(http.TimeFormat)}
	l.dated.Store(d)
	return d.text
}
