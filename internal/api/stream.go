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

// stallTimeout is how long a client may read nothing from a stream.
const stallTimeout = 30 * time.Second

// serveStream sends an answer while it is produced. An error after the first byte can only truncate it.
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

// flushingWriter flushes each write, and fails when the client does not read.
type flushingWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *flushingWriter) Write(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // ignored without support: then it is our own socket
	n, err := s.ResponseWriter.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	return n, err
}
