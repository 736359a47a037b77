package mcptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// maxMessage limits the messages that a fake server reads, in bytes.
const maxMessage = 256 << 20

// ServeStdio serves one client on r and w until r ends. Calls run concurrently.
func (s *Server) ServeStdio(ctx context.Context, r io.Reader, w io.Writer) error {
	var mu sync.Mutex // one message at a time on w
	raw := func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		w.Write(b)
	}
	send := func(msg []byte) { raw(append(bytes.Clone(msg), '\n')) }
	c := newClientConn(s)
	c.setStream(send)
	defer c.close()
	s.mu.Lock()
	s.conns[""] = c
	s.mu.Unlock()
	if s.opt.Banner != "" {
		raw([]byte(s.opt.Banner + "\n"))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := wirejson.NewLineReader(r, maxMessage)
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := wirejson.ParseServerMessage(bytes.Clone(line))
		if err != nil {
			continue
		}
		s.recordMessage(&m, nil)
		handle := func() {
			if answer := c.handleMessage(ctx, &m, Call{send: send, raw: raw}); answer != nil {
				send(answer)
			}
		}
		if m.Method == "tools/call" || s.opt.Other != nil && m.IsRequest() && m.Method != "initialize" {
			wg.Go(handle)
		} else {
			handle()
		}
	}
}

// childVar names the server that this process runs.
const childVar = "MCPTEST_SERVER"

// RunIfChild turns the test binary into a stdio server if Command started it, and does not return then. Call it
// first in TestMain.
func RunIfChild(servers map[string]func() *Server) {
	name := os.Getenv(childVar)
	if name == "" {
		return
	}
	build, ok := servers[name]
	if !ok {
		os.Stderr.WriteString("mcptest: there is no server " + name + "\n")
		os.Exit(2)
	}
	s := build()
	if s.opt.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	err := s.ServeStdio(context.Background(), os.Stdin, os.Stdout)
	if s.opt.IgnoreTerm {
		for { // it runs until it is killed
			time.Sleep(time.Hour)
		}
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		os.Exit(1)
	}
	os.Exit(0)
}

// ChildCommand returns the command and environment that start a server of the map for Child.
func ChildCommand(t testing.TB, name string) (command string, env map[string]string) {
	t.Helper()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return command, map[string]string{childVar: name}
}
