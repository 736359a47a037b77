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

// stallTime is how long who reads a stream may take none of it.
const stallTime = 30 * time.Second

// pour sends an answer as it comes about. What fails after the first byte can only
// cut the answer off.
func pour(w http.ResponseWriter, r *http.Request, f ops.File) {
	w.Header().Set("Content-Type", f.Type)
	if f.Name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	}
	out := &streamed{ResponseWriter: w, control: http.NewResponseController(w)}
	if err := f.Stream(r.Context(), out); err == nil || r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), auth.ErrSignedOut) {
		return
	} else if !out.begun {
		w.Header().Del("Content-Disposition")
		writeProblem(w, err)
		return
	}
	panic(http.ErrAbortHandler)
}

// streamed sends each write at once, and gives up on who does not take it.
type streamed struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *streamed) Write(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTime)) // where there is none, there is a socket of ours
	n, err := s.ResponseWriter.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	return n, err
}
