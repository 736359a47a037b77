package ops

import (
	"context"
	"io"
)

// Stream writes an answer as it comes about, until it is whole or ctx ends. Each
// write is sent at once, so that it had best be a whole line or more. An error
// before the first write is answered; a later one cuts the answer off.
type Stream func(ctx context.Context, w io.Writer) error

// File is a Stream to be saved under a name, with its media type.
type File struct {
	Type, Name string
	Stream     Stream
}
