package transport

import (
	"compress/gzip"
	"io"
)

// withDecompressedBody decompresses a response body that a server compressed although it was not requested. The reader
// of the body limits its size.
func (a *HTTPResponse) withDecompressedBody() *HTTPResponse {
	if a.gzipped {
		a.Body, a.length = &gzipBody{compressed: a.Body}, -1
	}
	return a
}

// gzipBody decompresses a body. It reads nothing before the first Read.
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
