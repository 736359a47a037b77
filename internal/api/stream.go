package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
)

// stallTimeout limits how long a client may stop reading from a stream.
const stallTimeout = 30 * time.Second

// serveStream sends a response while it is produced. After the first byte, an error can only abort the response.
func serveStream(w http.ResponseWriter, r *http.Request, f ops.Download) {
	w.Header().Set("Content-Type", f.Type)
	if f.Name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	}
	out := &flushingWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	if err := f.Stream(r.Context(), out); err == nil || r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), auth.ErrSignedOut) {
		return
	} else if !out.begun {
		w.Header().Del("Content-Disposition")
		writeProblem(w, err)
		return
	}
	panic(http.ErrAbortHandler)
}

// flushingWriter flushes each write, and returns an error if the client does not read.
type flushingWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *flushingWriter) Write(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // an error means that our own socket has no deadlines
	n, err := s.ResponseWriter.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	return n, err
}
