package ops

import (
	"context"
	"io"
)

// StreamFunc writes an answer until it is complete or ctx ends. Each write is flushed, so it should be whole lines. An error before the first write becomes
// the answer; a later one truncates it.
type StreamFunc func(ctx context.Context, w io.Writer) error

// Download is a StreamFunc to save under a name, with its media type.
type Download struct {
	Type, Name string
	Stream     StreamFunc
}
