package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// stdioProcess is `mcpproxy stdio` as a client uses it: many requests over one pair of pipes.
type stdioProcess struct {
	process *process
	in      io.WriteCloser

	mu      sync.Mutex // guards the fields below, and orders the lines
	next    int
	pending map[int]chan []byte
}

// startStdioProcess starts the stdio command with the daemon of dir, and opens a session.
func startStdioProcess(binary, dir string) (*stdioProcess, error) {
	cmd := exec.Command(binary, "stdio", "--config", configPath(dir), "--data-dir", filepath.Join(dir, "data"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &stdioProcess{process: &process{cmd: cmd}, in: in, pending: map[int]chan []byte{}}
	go c.readAnswers(bufio.NewReaderSize(out, 64<<10))
	_, err = c.call(context.Background(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if err == nil {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return c, err
}

// readAnswers passes each answer to the goroutine that waits for it, until the command ends.
func (c *stdioProcess) readAnswers(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(string(line[:min(len(line), 64)]), `"id":`)
		number, _, _ := strings.Cut(rest, ",")
		id, err := strconv.Atoi(number)
		if err != nil {
			continue // a notification
		}
		c.mu.Lock()
		wait := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		if wait != nil {
			wait <- line
		}
	}
}

// call sends a request with a new ID. In body the ID is 1.
func (c *stdioProcess) call(ctx context.Context, body []byte) ([]byte, error) {
	const before = len(`{"jsonrpc":"2.0","id":`)
	wait := make(chan []byte, 1)
	c.mu.Lock()
	c.next++
	c.pending[c.next] = wait
	_, err := fmt.Fprintf(c.in, "%s%d%s\n", body[:before], c.next, body[before+1:])
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-wait:
		return answer, nil
	case <-ctx.Done():
		return nil, errors.New("the command gives no answer")
	}
}
