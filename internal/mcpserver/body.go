package mcpserver

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

const (
	firstRoom   = 4 << 10 // initial buffer for a body of unknown size
	bodyTimeout = 10 * time.Second
)

var errTooLarge = errors.New("the body is too large")

// readBody reads the body, or answers with an error. The buffer is not pooled: the activity record and the
// server may keep parts of it longer than the request.
func (x *httpRequest) readBody() ([]byte, bool) {
	size := x.r.ContentLength
	if size > maxBody && (size > maxDrain || x.r.Header.Get("Expect") != "") {
		x.out.w.Header().Set("Connection", "close")
		x.out.sendError(http.StatusRequestEntityTooLarge, errBodyTooLarge)
		return nil, false
	}
	rc := http.NewResponseController(x.out.w)
	deadline := rc.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil
	body, err := readLimitedBody(x.r.Body, size)
	if deadline && err == nil {
		// net/http continues to read, to detect a disconnect; that must not time out. Reading the rest of
		// an incomplete body must.
		_ = rc.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return body, true
	case errors.Is(err, errTooLarge):
		x.out.sendError(http.StatusRequestEntityTooLarge, errBodyTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.out.w.Header().Set("Connection", "close")
		x.out.sendError(http.StatusRequestTimeout, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "The request body did not arrive within " + bodyTimeout.String() + "."})
	default:
		x.out.sendError(http.StatusBadRequest, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "The request body could not be read completely."})
	}
	return nil, false
}

func readLimitedBody(r io.Reader, size int64) ([]byte, error) {
	if size >= 0 && size <= maxBody {
		return readSizedBody(r, int(size))
	}
	if size < 0 {
		body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
		if err != nil || len(body) <= maxBody {
			return body, err
		}
	}
	if _, err := io.CopyN(io.Discard, r, maxDrain); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, errTooLarge
}

// readSizedBody reads a body of a known size. The buffer grows with the data, so that a false length takes
// little memory.
func readSizedBody(r io.Reader, size int) ([]byte, error) {
	body := make([]byte, min(size, firstRoom))
	for at := 0; ; {
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return nil, err
		}
		if at = len(body); at == size {
			return body, nil
		}
		more := make([]byte, min(size, 4*at))
		copy(more, body)
		body = more
	}
}
