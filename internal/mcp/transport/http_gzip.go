package transport

import (
	"compress/gzip"
	"io"
)

// unzipped returns the answer with its body as it was before a server compressed it, which nobody
// had asked for. What is read of it is bounded where it is read, as any other body.
func (a *Response) unzipped() *Response {
	if a.gzipped {
		a.Body, a.length = &gzipBody{compressed: a.Body}, -1
	}
	return a
}

// gzipBody reads a compressed body. Nothing is read before the first Read: the beginning of a stream
// may be long in coming.
type gzipBody struct {
	compressed io.ReadCloser
	plain      *gzip.Reader
}

func (b *gzipBody) Read(p []byte) (int, error) {
	if b.plain == nil {
		plain, err := gzip.NewReader(b.compressed)
		if err != nil {
			return 0, err
		}
		b.plain = plain
	}
	return b.plain.Read(p)
}

func (b *gzipBody) Close() error { return b.compressed.Close() }
