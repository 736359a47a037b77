package httpserver

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxPending is the maximum size of the buffered body before a flush, in bytes.
	maxPending = 32 << 10
	// keptBuffer is the maximum size of the buffer that an idle connection keeps, in bytes.
	keptBuffer = 4 << 10
)

// responseWriter is the http.ResponseWriter of the current request. It sends the reply in one write, unless it
// is flushed or large.
type responseWriter struct {
	c       *connIO
	cancel  context.CancelCauseFunc
	body    requestBody // body of the request
	header  http.Header
	status  int   // 0 means not set
	length  int64 // length that the handler announced; -1 means none
	written int64
	held    []byte // buffered body, while it may be complete
	out     []byte // next bytes to write
	headed  bool   // the head is complete in out, or written
	chunked bool
	last    bool // the connection closes after this reply
	err     error
	by      time.Time // deadline of the handler
}

// Cancel ends the context of the request with a cause, so that a handler needs no additional context.
func (w *responseWriter) Cancel(why error) { w.cancel(why) }

// Header returns the header to send.
func (w *responseWriter) Header() http.Header { return w.header }

// SetReadDeadline limits reading the body, in addition to BodyTime.
func (w *responseWriter) SetReadDeadline(by time.Time) error {
	w.body.handlerDeadline = by
	return nil
}

// SetWriteDeadline limits the following writes. Zero means no limit.
func (w *responseWriter) SetWriteDeadline(by time.Time) error {
	w.by = by
	return nil
}

// WriteHeader fixes status and header. Interim responses (1xx) are not sent.
func (w *responseWriter) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status = status
	if values := w.header["Content-Length"]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 63); err == nil {
			w.length = int64(n)
		}
	}
	values := w.header["Connection"]
	w.last = len(values) > 0 && strings.EqualFold(values[0], "close")
	w.appendHeader()
}

func isBodylessStatus(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// Write appends to the body.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return 0, w.err
	case len(p) == 0:
		return 0, nil
	case isBodylessStatus(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	// Rejected bytes count too: the rest of the body must not take their place.
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if !w.headed && w.length < 0 && w.written <= maxPending {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if !w.headed {
		w.addFramingAndBody(false)
	}
	if len(w.out)+len(p) > maxPending {
		w.sendBuffered(p)
	} else {
		w.appendBodyPiece(p)
	}
	return len(p), w.err
}

// appendBodyPiece appends a piece of the body.
func (w *responseWriter) appendBodyPiece(p []byte) {
	if !w.chunked {
		w.out = append(w.out, p...)
		return
	}
	w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
	w.out = append(append(append(w.out, "\r\n"...), p...), "\r\n"...)
}

// addFramingAndBody completes the head and appends the buffered body. whole reports that the body is complete.
func (w *responseWriter) addFramingAndBody(whole bool) {
	w.headed = true
	if whole && w.length < 0 {
		w.length = int64(len(w.held))
	}
	switch {
	case isBodylessStatus(w.status):
	case w.length >= 0:
		w.out = append(strconv.AppendInt(append(w.out, "Content-Length: "...), w.length, 10), "\r\n"...)
	default:
		w.chunked = true
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.last = w.last || w.c.isEnding(); w.last {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	w.out = append(w.out, "\r\n"...)
	if len(w.held) > 0 {
		w.appendBodyPiece(w.held)
		w.held = nil
	}
}

// appendHeader appends the status line and the handler's header without framing headers.
func (w *responseWriter) appendHeader() {
	b := append(w.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	text := http.StatusText(w.status)
	if text == "" {
		text = "status code " + strconv.Itoa(w.status)
	}
	b = append(append(append(b, ' '), text...), "\r\n"...)
	var room [16]string
	keys := room[:0]
	for key := range w.header {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key == "Connection" || key == "Content-Length" || key == "Transfer-Encoding" || !consistsOf([]byte(key), &tokenByte) {
			continue
		}
		for _, value := range w.header[key] {
			b = append(append(b, key...), ": "...)
			b = appendHeaderValue(b, value)
			b = append(b, "\r\n"...)
		}
	}
	if w.header["Date"] == nil {
		b = append(append(append(b, "Date: "...), w.c.l.dateHeader()...), "\r\n"...)
	}
	w.out = b
}

// appendHeaderValue appends a header value. Line breaks become spaces.
func appendHeaderValue(b []byte, value string) []byte {
	at := len(b)
	b = append(b, strings.Trim(value, " \t")...)
	for i := at; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return b
}

// Flush is like FlushError, but ignores the error.
func (w *responseWriter) Flush() { _ = w.FlushError() }

// FlushError sends the buffered bytes.
func (w *responseWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.headed {
		w.addFramingAndBody(false)
	}
	if len(w.out) > 0 {
		w.sendBuffered(nil)
	}
	return w.err
}

// finishReply completes the reply. It returns false if the client did not get the announced length.
func (w *responseWriter) finishReply() bool {
	w.WriteHeader(http.StatusOK)
	if !w.headed {
		w.addFramingAndBody(true)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n\r\n"...)
	}
	if len(w.out) > 0 {
		w.sendBuffered(nil)
	}
	if cap(w.out) <= keptBuffer {
		w.c.outBuffer = w.out
	}
	if w.err != nil {
		return false
	}
	w.err = http.ErrHandlerTimeout // for late writes
	return w.length < 0 || w.length == w.written || isBodylessStatus(w.status)
}

// sendBuffered writes the buffered bytes and then p.
func (w *responseWriter) sendBuffered(p []byte) {
	if w.err != nil {
		return
	}
	now := time.Now()
	if c := w.c; !isDeadlineCloseEnough(c.writeBy, w.by, now) {
		c.setWriteDeadline(w.by)
	}
	w.c.markWriteStarted(now)
	defer w.c.markWriteEnded()
	if len(p) > 0 && w.chunked {
		w.out = append(strconv.AppendInt(w.out, int64(len(p)), 16), "\r\n"...)
	}
	if len(p) == 0 {
		_, w.err = w.c.nc.Write(w.out)
	} else {
		bufs := net.Buffers{w.out, p}
		if w.chunked {
			bufs = append(bufs, newline)
		}
		_, w.err = bufs.WriteTo(w.c.nc)
	}
	w.out = w.out[:0]
	if w.err != nil {
		w.c.cancel(nil) // the client has disconnected
	}
}
