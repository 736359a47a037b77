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

// SampleTools returns one tool of each kind. Arguments are integers unless stated otherwise.
//
//	echo                answers with its arguments as structuredContent
//	params              answers with its params as structuredContent
//	pid                 answers with the number of its process
//	slow ms             answers after that time; sends no answer if cancelled
//	hang                never answers
//	notify n            sends n times progress and a log message, then answers
//	ask                 sends a ping and a sampling request to the client, answers with their results
//	fail                answers with isError
//	rpc_error           answers with a JSON-RPC error that has data
//	crash               ends its process; over HTTP breaks the connection
//	wrong_id            answers with the ID of another request
//	duplicate           answers twice
//	garbage             writes lines that are not JSON, then answers
//	traced              writes the beginning of its answer like a log line, then answers (stdio)
//	half bytes          writes half of an answer with that many bytes of text, then hangs
//	deep n              answers with arrays nested n deep
//	huge bytes          answers with a text of that length
//	endless json        answers with a text that never ends; over HTTP with json=1 as one JSON body, otherwise as events
//	drip ms             sends its answer one byte at a time
//	stderr bytes        writes that much to stderr, then answers
//	storm n rate        sends tools/list_changed n times, at most rate times per second, then answers
//	no_input            closes its stdin, then answers
//	zip bytes           answers with a compressed body that would be that long (HTTP)
func SampleTools() []Tool {
	tools := []Tool{
		newTool("echo", func(c *Call) (json.RawMessage, error) { return structuredResult(c.Arguments), nil }),
		newTool("params", func(c *Call) (json.RawMessage, error) { return structuredResult(c.Params), nil }),
		newTool("pid", func(*Call) (json.RawMessage, error) { return textResult(strconv.Itoa(os.Getpid())), nil }),
		newTool("slow", handleSlow),
		newTool("hang", handleHang),
		newTool("notify", handleNotify),
		newTool("ask", handleAsk),
		newTool("fail", func(*Call) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"it failed"}],"isError":true}`), nil
		}),
		newTool("rpc_error", func(*Call) (json.RawMessage, error) {
			return nil, &wirejson.RPCError{Code: -32050, Message: "no luck", Data: json.RawMessage(`{"why":1}`)}
		}),
		newTool("crash", handleCrash),
		newTool("stderr", func(c *Call) (json.RawMessage, error) {
			block := bytes.Repeat([]byte(stderrText), 1000)
			for left := c.IntArgument("bytes", 1000); left > 0; left -= len(block) {
				os.Stderr.Write(block[:min(left, len(block))])
			}
			return textResult("done"), nil
		}),
		newTool("storm", handleListChangedStorm),
		newTool("no_input", func(c *Call) (json.RawMessage, error) {
			os.Stdin.Close()
			return textResult("done"), nil
		}),
		newTool("zip", handleZipBomb),
	}
	return append(tools, invalidOutputTools()...)
}

const stderrText = "this server has a lot to say about everything that it does, and says it all the time\n"

// invalidOutputTools returns the tools that write invalid output.
func invalidOutputTools() []Tool {
	return []Tool{
		newTool("wrong_id", func(c *Call) (json.RawMessage, error) {
			c.send(wirejson.AppendResult(nil, json.RawMessage("999999999"), textResult("not yours")))
			return nil, ErrNoAnswer
		}),
		newTool("duplicate", func(c *Call) (json.RawMessage, error) {
			c.send(wirejson.AppendResult(nil, c.ID, textResult("first")))
			return textResult("second"), nil
		}),
		newTool("garbage", func(c *Call) (json.RawMessage, error) {
			c.WriteRaw([]byte("Listening on port 3000\n{\"jsonrpc\":\n[1,2\n\x00\xff\n{}\n\n"))
			return textResult("done"), nil
		}),
		newTool("traced", func(c *Call) (json.RawMessage, error) {
			c.WriteRaw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":[{"ty...` + "\n"))
			return textResult("done"), nil
		}),
		newTool("half", func(c *Call) (json.RawMessage, error) {
			c.WriteRaw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":["` + strings.Repeat("x", c.IntArgument("bytes", 0))))
			return handleHang(c)
		}),
		newTool("deep", func(c *Call) (json.RawMessage, error) {
			n := c.IntArgument("n", 100_000)
			return structuredResult(append(bytes.Repeat([]byte{'['}, n), bytes.Repeat([]byte{']'}, n)...)), nil
		}),
		newTool("huge", func(c *Call) (json.RawMessage, error) {
			return textResult(string(bytes.Repeat([]byte{'x'}, c.IntArgument("bytes", 1<<20)))), nil
		}),
		newTool("endless", func(c *Call) (json.RawMessage, error) {
			if c.HTTP != nil {
				c.raw = func(b []byte) { c.HTTP.Write(b) }
				if c.IntArgument("json", 0) == 1 {
					c.HTTP.Header().Set("Content-Type", "application/json")
				} else {
					c.HTTP.Header().Set("Content-Type", "text/event-stream")
					c.WriteRaw([]byte("data: "))
				}
			}
			c.WriteRaw([]byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":[{"type":"text","text":"`))
			block := bytes.Repeat([]byte{'x'}, 64<<10)
			for c.ctx.Err() == nil {
				c.WriteRaw(block)
			}
			return nil, ErrNoAnswer
		}),
		newTool("drip", handleSlowOutput),
	}
}

// ToolDefinition returns the definition of a tool that accepts any arguments.
func ToolDefinition(name string) string {
	return `{"name":` + quoteJSON(name) + `,"description":` + quoteJSON("does "+name) + `,"inputSchema":{"type":"object"}}`
}

func newTool(name string, handle func(*Call) (json.RawMessage, error)) Tool {
	return Tool{Definition: ToolDefinition(name), Handle: handle}
}

func textResult(s string) json.RawMessage {
	return json.RawMessage(`{"content":[{"type":"text","text":` + quoteJSON(s) + `}]}`)
}

func structuredResult(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		raw = json.RawMessage("null")
	}
	return json.RawMessage(`{"content":[],"structuredContent":` + string(raw) + `}`)
}

func handleHang(c *Call) (json.RawMessage, error) {
	<-c.ctx.Done()
	return nil, ErrNoAnswer
}

func handleSlow(c *Call) (json.RawMessage, error) {
	select {
	case <-time.After(time.Duration(c.IntArgument("ms", 100)) * time.Millisecond):
		return structuredResult(c.Arguments), nil
	case <-c.ctx.Done():
		return nil, ErrNoAnswer
	}
}

func handleNotify(c *Call) (json.RawMessage, error) {
	for i := range c.IntArgument("n", 3) {
		c.SendProgress(i)
		c.SendLogMessage(fmt.Sprintf("step %d", i))
	}
	return textResult("done"), nil
}

func handleAsk(c *Call) (json.RawMessage, error) {
	pong, err := c.SendRequest("ping", nil)
	if err != nil {
		return nil, err
	}
	refused, err := c.SendRequest("sampling/createMessage", json.RawMessage(`{"messages":[]}`))
	if err != nil {
		return nil, err
	}
	code := 0
	if refused.Error != nil {
		code = refused.Error.Code
	}
	return structuredResult(fmt.Appendf(nil, `{"ping":%s,"sampling":%d}`, pong.Result, code)), nil
}

// handleListChangedStorm sends the notifications in bursts every ten milliseconds.
func handleListChangedStorm(c *Call) (json.RawMessage, error) {
	n := c.IntArgument("n", 1000)
	burst := n
	if rate := c.IntArgument("rate", 0); rate > 0 {
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
	return textResult("done"), nil
}

// handleZipBomb sends compressed zeros: one small gzip member repeatedly.
func handleZipBomb(c *Call) (json.RawMessage, error) {
	const each = 1 << 20
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	w.Write(make([]byte, each))
	w.Close()
	c.HTTP.Header().Set("Content-Encoding", "gzip")
	c.HTTP.Header().Set("Content-Type", "application/json")
	for left := c.IntArgument("bytes", each); left > 0 && c.ctx.Err() == nil; left -= each {
		c.HTTP.Write(member.Bytes())
	}
	return nil, ErrNoAnswer
}

func handleCrash(c *Call) (json.RawMessage, error) {
	if c.HTTP != nil {
		panic(http.ErrAbortHandler)
	}
	os.Exit(3)
	return nil, ErrNoAnswer
}

func handleSlowOutput(c *Call) (json.RawMessage, error) {
	msg := append(wirejson.AppendResult(nil, c.ID, textResult("drop by drop")), '\n')
	if c.HTTP != nil {
		msg = wirejson.AppendSSEEvent(nil, "", msg[:len(msg)-1])
	}
	for i := range msg {
		select {
		case <-time.After(time.Duration(c.IntArgument("ms", 1)) * time.Millisecond):
			c.WriteRaw(msg[i : i+1])
		case <-c.ctx.Done():
			return nil, ErrNoAnswer
		}
	}
	return nil, ErrNoAnswer
}
