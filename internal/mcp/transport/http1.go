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
var errMalformed = problem.Ownf("the answer is not a well-formed HTTP response")

func malformed(what string) error { return problem.Ownf("%w: %s", errMalformed, what) }

// readHead reads the head of the final response and prepares the body.
func (c *leanConn) readHead() (*Response, error) {
	budget := maxHead
	for {
		c.answer = Response{length: -1, Body: c}
		c.frame, c.left, c.err = frameClose, 0, nil
		if err := c.readStatus(&budget); err != nil {
			return nil, err
		}
		if err := c.readFields(&budget); err != nil {
			return nil, err
		}
		if c.answer.Status == 101 {
			return nil, malformed("it switches protocols")
		}
		if c.answer.Status >= 200 {
			break
		}
	}
	c.frameBody()
	return &c.answer, nil
}

// frameBody determines the end of the body.
func (c *leanConn) frameBody() {
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

// readLine returns the next line of a head without its end, valid until the next read.
func (c *leanConn) readLine(budget *int) ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, malformed("a header line is longer than " + strconv.Itoa(maxHeadLine) + " bytes")
	}
	if err != nil {
		return nil, unexpected(err)
	}
	if *budget -= len(line); *budget < 0 {
		return nil, malformed("its headers are longer than " + strconv.Itoa(maxHead) + " bytes")
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
		return malformed("its first line is no status line")
	}
	status, ok := number(line[9:12], 10, mostDigits)
	if !ok || status < 100 {
		return malformed("its status is no number")
	}
	c.answer.Status = int(status)
	c.old = line[7] == '0'
	c.keep = !c.old
	return nil
}

func (c *leanConn) readFields(budget *int) error {
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
			return malformed("a header line has no name")
		}
		if err := c.field(line[:colon], bytes.Trim(line[colon+1:], " \t")); err != nil {
			return err
		}
	}
}

// field handles a header line, for the framing and for the response.
func (c *leanConn) field(name, value []byte) error {
	a := &c.answer
	var buf [maxFieldName]byte
	lower := lowered(buf[:0], name)
	switch string(lower) {
	case "content-length":
		n, ok := number(value, 10, mostDigits)
		if !ok || a.length >= 0 && a.length != n {
			return malformed("its Content-Length is no number")
		}
		a.length = n
	case "transfer-encoding":
		if c.old || !bytes.EqualFold(value, []byte("chunked")) {
			return malformed("its Transfer-Encoding is not chunked, or the version is 1.0")
		}
		c.frame = frameChunked
	case "connection":
		if containsToken(value, "close") {
			c.keep = false
		} else if containsToken(value, "keep-alive") {
			c.keep = true
		}
	}
	a.field(lower, name, value, c.passes)
	return nil
}

func containsToken(list []byte, token string) bool {
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
		if c.err = c.nextChunk(); c.err != nil {
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
		c.err = unexpected(err)
	case c.left > 0:
	case c.frame == frameLength:
		c.err = io.EOF
	default:
		c.left = afterChunk
		if c.br.Buffered() >= len("\r\n") {
			c.err = c.endChunk()
		}
	}
	if n > 0 {
		return n, nil // the next Read returns the error
	}
	return n, c.err
}

// afterChunk in left says that the line break after a chunk is not read yet.
const afterChunk = -1

// endChunk reads the line break after a chunk.
func (c *leanConn) endChunk() error {
	budget := maxHead
	line, err := c.readLine(&budget)
	if err != nil {
		return err
	}
	if len(line) != 0 {
		return malformed("a chunk is longer than it says")
	}
	c.left = 0
	return nil
}

// nextChunk reads up to the data of the next chunk; io.EOF after the last.
func (c *leanConn) nextChunk() error {
	if c.left == afterChunk {
		if err := c.endChunk(); err != nil {
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
	size, ok := number(bytes.TrimRight(line, " \t"), 16, mostHexadecimal)
	if !ok {
		return malformed("the length of a chunk is no number")
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

// number parses a number of at most so many digits.
func number(b []byte, base, most int) (int64, bool) {
	if len(b) > most {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b), base, 63)
	return int64(n), err == nil
}

// These many digits always fit into an int64.
const mostDigits, mostHexadecimal = 18, 15

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
