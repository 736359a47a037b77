package ops

import (
	"context"
	"io"
)

// StreamFunc writes an answer until it is complete or ctx is done. Each write is flushed, so it should consist of whole
// lines. An error before the first write is returned to the client. A later error aborts the answer.
type StreamFunc func(ctx context.Context, w io.Writer) error

// Download is a stream with its media type and a suggested file name.
type Download struct {
	Type, Name string
	Stream     StreamFunc
}
