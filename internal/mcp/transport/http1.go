package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"mcpproxy/internal/problem"
)

// errMalformed is wrapped by every error about a malformed HTTP response.
var errMalformed = problem.TrustedTextErrorf("the answer is not a well-formed HTTP response")

func newMalformedError(what string) error {
	return problem.TrustedTextErrorf("%w: %s", errMalformed, what)
}

// readHead reads the head of the final response and prepares the body.
func (c *leanConn) readHead() (*HTTPResponse, error) {
	budget := maxHead
	for {
		c.answer = HTTPResponse{length: -1, Body: c}
		c.frame, c.left, c.err = frameClose, 0, nil
		if err := c.readStatus(&budget); err != nil {
			return nil, err
		}
		if err := c.readHeaders(&budget); err != nil {
			return nil, err
		}
		if c.answer.Status == 101 {
			return nil, newMalformedError("it switches protocols")
		}
		if c.answer.Status >= 200 {
			break
		}
	}
	c.setBodyFraming()
	return &c.answer, nil
}

// setBodyFraming determines the end of the body.
func (c *leanConn) setBodyFraming() {
	a := &c.answer
	switch {
	case a.Status == 204 || a.Status == 304:
		a.length = 0
		c.frame, c.left, c.err = frameLength, 0, io.EOF
	case c.frame == frameChunked:
		a.length = -1
	case a.length >= 0:
		c.frame, c.left = frameLength, a.length
		if a.length == 0 {
			c.err = io.EOF
		}
	default:
		c.keep = false
	}
}

// readLine returns the next line of a head without its line end. It is valid until the next read.
func (c *leanConn) readLine(budget *int) ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, newMalformedError("a header line is longer than " + strconv.Itoa(maxHeadLine) + " bytes")
	}
	if err != nil {
		return nil, toUnexpectedEOF(err)
	}
	if *budget -= len(line); *budget < 0 {
		return nil, newMalformedError("its headers are longer than " + strconv.Itoa(maxHead) + " bytes")
	}
	line = line[:len(line)-1]
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

// readStatus reads the status line, such as "HTTP/1.1 200 OK".
func (c *leanConn) readStatus(budget *int) error {
	line, err := c.readLine(budget)
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return newMalformedError("its first line is not a status line")
	}
	status, ok := parseLimitedNumber(line[9:12], 10, mostDigits)
	if !ok || status < 100 {
		return newMalformedError("its status is not a number")
	}
	c.answer.Status = int(status)
	c.old = line[7] == '0'
	c.keep = !c.old
	return nil
}

func (c *leanConn) readHeaders(budget *int) error {
	for {
		line, err := c.readLine(budget)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || line[colon-1] == ' ' || line[0] == ' ' || line[0] == '\t' {
			return newMalformedError("a header line has no name")
		}
		if err := c.parseHeader(line[:colon], bytes.Trim(line[colon+1:], " \t")); err != nil {
			return err
		}
	}
}

// parseHeader handles a header line, for the framing and for the response.
func (c *leanConn) parseHeader(name, value []byte) error {
	a := &c.answer
	var buf [maxFieldName]byte
	lower := appendLower(buf[:0], name)
	switch string(lower) {
	case "content-length":
		n, ok := parseLimitedNumber(value, 10, mostDigits)
		if !ok || a.length >= 0 && a.length != n {
			return newMalformedError("its Content-Length is not a number")
		}
		a.length = n
	case "transfer-encoding":
		if c.old || !bytes.EqualFold(value, []byte("chunked")) {
			return newMalformedError("its Transfer-Encoding is not chunked, or the version is 1.0")
		}
		c.frame = frameChunked
	case "connection":
		if listContainsToken(value, "close") {
			c.keep = false
		} else if listContainsToken(value, "keep-alive") {
			c.keep = true
		}
	}
	a.addHeader(lower, name, value, c.passes)
	return nil
}

func listContainsToken(list []byte, token string) bool {
	for item := range bytes.SplitSeq(list, []byte{','}) {
		if bytes.EqualFold(bytes.TrimSpace(item), []byte(token)) {
			return true
		}
	}
	return false
}

// Read reads the body.
func (c *leanConn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.frame == frameChunked && c.left <= 0 {
		if c.err = c.readChunkStart(); c.err != nil {
			return 0, c.err
		}
	}
	if c.frame == frameClose {
		n, err := c.br.Read(p)
		c.err = err
		return n, err
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.br.Read(p)
	c.left -= int64(n)
	switch {
	case err != nil:
		c.err = toUnexpectedEOF(err)
	case c.left > 0:
	case c.frame == frameLength:
		c.err = io.EOF
	default:
		c.left = afterChunk
		if c.br.Buffered() >= len("\r\n") {
			c.err = c.readChunkEnd()
		}
	}
	if n > 0 {
		return n, nil // the next Read returns the error
	}
	return n, c.err
}

// afterChunk is the value of left if the line break after a chunk is not read yet.
const afterChunk = -1

// readChunkEnd reads the line break after a chunk.
func (c *leanConn) readChunkEnd() error {
	budget := maxHead
	line, err := c.readLine(&budget)
	if err != nil {
		return err
	}
	if len(line) != 0 {
		return newMalformedError("a chunk is longer than its declared length")
	}
	c.left = 0
	return nil
}

// readChunkStart reads up to the data of the next chunk. It returns io.EOF after the last chunk.
func (c *leanConn) readChunkStart() error {
	if c.left == afterChunk {
		if err := c.readChunkEnd(); err != nil {
			return err
		}
	}
	budget := maxHead
	line, err := c.readLine(&budget)
	if err != nil {
		return err
	}
	if semi := bytes.IndexByte(line, ';'); semi >= 0 {
		line = line[:semi]
	}
	size, ok := parseLimitedNumber(bytes.TrimRight(line, " \t"), 16, mostHexadecimal)
	if !ok {
		return newMalformedError("the length of a chunk is not a number")
	}
	if size > 0 {
		c.left = size
		return nil
	}
	for { // trailers
		line, err := c.readLine(&budget)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
	}
}

// parseLimitedNumber parses a number with at most the given number of digits.
func parseLimitedNumber(b []byte, base, most int) (int64, bool) {
	if len(b) > most {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b), base, 63)
	return int64(n), err == nil
}

// Numbers with at most this many digits fit into an int64.
const mostDigits, mostHexadecimal = 18, 15

func toUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
