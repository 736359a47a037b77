package mcptest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// Zoo returns one tool of each kind. Arguments are integers unless said.
//
//	echo                answers with its arguments as structuredContent
//	params              answers with its params as structuredContent
//	pid                 answers with the number of its process
//	slow ms             answers after that time, or not at all when cancelled
//	hang                never answers
//	notify n            sends n times progress and a log message, then answers
//	ask                 asks the client for a ping and a sampling, answers with what came
//	fail                answers with isError
//	rpc_error           answers with a JSON-RPC error that has data
//	crash               ends its process; over HTTP breaks the connection
//	wrong_id            answers another request
//	duplicate           answers twice
//	garbage             writes lines that are no JSON, then answers
//	traced              writes the beginning of its answer, as a log does, then answers (stdio)
//	half bytes          writes half of its answer, with so many bytes of text, then hangs
//	deep n              answers with arrays nested n deep
//	huge bytes          answers with a text of that length
//	endless json        answers with a text that does not end; over HTTP with json 1 as one JSON body, else as events
//	drip ms             sends its answer one byte at a time
//	stderr bytes        writes that much to stderr, then answers
//	storm n rate        says n times, at most rate times a second, that the tools have changed, then answers
//	no_input            closes its stdin, then answers
//	zip bytes           answers with a compressed body that would be that long (HTTP)
func Zoo() []Tool {
	tools := []Tool{
		zoo("echo", func(c *Call) (json.RawMessage, error) { return structured(c.Arguments), nil }),
		zoo("params", func(c *Call) (json.RawMessage, error) { return structured(c.Params), nil }),
		zoo("pid", func(*Call) (json.RawMessage, error) { return text(strconv.Itoa(os.Getpid())), nil }),
		zoo("slow", slow),
		zoo("hang", hang),
		zoo("notify", notify),
		zoo("ask", ask),
		zoo("fail", func(*Call) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"it failed"}],"isError":true}`), nil
		}),
		zoo("rpc_error", func(*Call) (json.RawMessage, error) {
			return nil, &wirejson.RPCError{Code: -32050, Message: "no luck", Data: json.RawMessage(`{"why":1}`)}
		}),
		zoo("crash", crash),
		zoo("stderr", func(c *Call) (json.RawMessage, error) {
			block := bytes.Repeat([]byte(flood), 1000)
			for left := c.Int("bytes", 1000); left > 0; left -= len(block) {
				os.Stderr.Write(block[:min(left, len(block))])
			}
			return text("done"), nil
		}),
		zoo("storm", storm),
		zoo("no_input", func(c *Call) (json.RawMessage, error) {
			os.Stdin.Close()
			return text("done"), nil
		}),
		zoo("zip", bomb),
	}
	return append(tools, liars()...)
}

const flood = "this server has a lot to say about everything that it does, and says it all the time\n"

// liars returns the tools that write invalid output.
func liars() []Tool {
	return []Tool{
		zoo("wrong_id", func(c *Call) (json.RawMessage, error) {
			c.send(wirejson.AppendResult(nil, json.RawMessage("999999999"), text("not yours")))
			return nil, ErrNoAnswer
		}),
		zoo("duplicate", func(c *Call) (json.RawMessage, error) {
			c.send(wirejson.AppendResult(nil, c.ID, text("first")))
			return text("second"), nil
		}),
		zoo("garbage", func(c *Call) (json.RawMessage, error) {
			c.Raw([]byte("Listening on port 3000\n{\"jsonrpc\":\n[1,2\n\x00\xff\n{}\n\n"))
			return text("done"), nil
		}),
		zoo("traced", func(c *Call) (json.RawMessage, error) {
			c.Raw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":[{"ty...` + "\n"))
			return text("done"), nil
		}),
		zoo("half", func(c *Call) (json.RawMessage, error) {
			c.Raw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":["` + strings.Repeat("x", c.Int("bytes", 0))))
			return hang(c)
		}),
		zoo("deep", func(c *Call) (json.RawMessage, error) {
			n := c.Int("n", 100_000)
			return structured(append(bytes.Repeat([]byte{'['}, n), bytes.Repeat([]byte{']'}, n)...)), nil
		}),
		zoo("huge", func(c *Call) (json.RawMessage, error) {
			return text(string(bytes.Repeat([]byte{'x'}, c.Int("bytes", 1<<20)))), nil
		}),
		zoo("endless", func(c *Call) (json.RawMessage, error) {
			if c.HTTP != nil {
				c.raw = func(b []byte) { c.HTTP.Write(b) }
				if c.Int("json", 0) == 1 {
					c.HTTP.Header().Set("Content-Type", "application/json")
				} else {
					c.HTTP.Header().Set("Content-Type", "text/event-stream")
					c.Raw([]byte("data: "))
				}
			}
			c.Raw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":[{"type":"text","text":"`))
			block := bytes.Repeat([]byte{'x'}, 64<<10)
			for c.ctx.Err() == nil {
				c.Raw(block)
			}
			return nil, ErrNoAnswer
		}),
		zoo("drip", drip),
	}
}

// Define returns the definition of a tool that accepts any arguments.
func Define(name string) string {
	return `{"name":` + quote(name) + `,"description":` + quote("does "+name) + `,"inputSchema":{"type":"object"}}`
}

func zoo(name string, handle func(*Call) (json.RawMessage, error)) Tool {
	return Tool{Definition: Define(name), Handle: handle}
}

func text(s string) json.RawMessage {
	return json.RawMessage(`{"content":[{"type":"text","text":` + quote(s) + `}]}`)
}

func structured(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		raw = json.RawMessage("null")
	}
	return json.RawMessage(`{"content":[],"structuredContent":` + string(raw) + `}`)
}

func hang(c *Call) (json.RawMessage, error) {
	<-c.ctx.Done()
	return nil, ErrNoAnswer
}

func slow(c *Call) (json.RawMessage, error) {
	select {
	case <-time.After(time.Duration(c.Int("ms", 100)) * time.Millisecond):
		return structured(c.Arguments), nil
	case <-c.ctx.Done():
		return nil, ErrNoAnswer
	}
}

func notify(c *Call) (json.RawMessage, error) {
	for i := range c.Int("n", 3) {
		c.Progress(i)
		c.Log(fmt.Sprintf("step %d", i))
	}
	return text("done"), nil
}

func ask(c *Call) (json.RawMessage, error) {
	pong, err := c.Ask("ping", nil)
	if err != nil {
		return nil, err
	}
	refused, err := c.Ask("sampling/createMessage", json.RawMessage(`{"messages":[]}`))
	if err != nil {
		return nil, err
	}
	code := 0
	if refused.Error != nil {
		code = refused.Error.Code
	}
	return structured(fmt.Appendf(nil, `{"ping":%s,"sampling":%d}`, pong.Result, code)), nil
}

// storm is paced in bursts of ten milliseconds.
func storm(c *Call) (json.RawMessage, error) {
	n := c.Int("n", 1000)
	burst := n
	if rate := c.Int("rate", 0); rate > 0 {
		burst = max(1, rate/100)
	}
	for n > 0 {
		for range min(n, burst) {
			c.Server.Broadcast("notifications/tools/list_changed", nil)
		}
		if n -= burst; n <= 0 {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.ctx.Done():
			return nil, ErrNoAnswer
		}
	}
	return text("done"), nil
}

// bomb sends compressed zeros: one small gzip member repeatedly.
func bomb(c *Call) (json.RawMessage, error) {
	const each = 1 << 20
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	w.Write(make([]byte, each))
	w.Close()
	c.HTTP.Header().Set("Content-Encoding", "gzip")
	c.HTTP.Header().Set("Content-Type", "application/json")
	for left := c.Int("bytes", each); left > 0 && c.ctx.Err() == nil; left -= each {
		c.HTTP.Write(member.Bytes())
	}
	return nil, ErrNoAnswer
}

func crash(c *Call) (json.RawMessage, error) {
	if c.HTTP != nil {
		panic(http.ErrAbortHandler)
	}
	os.Exit(3)
	return nil, ErrNoAnswer
}

func drip(c *Call) (json.RawMessage, error) {
	msg := append(wirejson.AppendResult(nil, c.ID, text("drop by drop")), '\n')
	if c.HTTP != nil {
		msg = wirejson.AppendEvent(nil, "", msg[:len(msg)-1])
	}
	for i := range msg {
		select {
		case <-time.After(time.Duration(c.Int("ms", 1)) * time.Millisecond):
			c.Raw(msg[i : i+1])
		case <-c.ctx.Done():
			return nil, ErrNoAnswer
		}
	}
	return nil, ErrNoAnswer
}
