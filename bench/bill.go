package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// The simulated session whose costs benchSurfaceCosts adds up.
const (
	billedSearches = 3
	billedCalls    = 10
	foundBySelf    = 3 // definitions that a client's own search loads
)

// allPath is the surface with the tools of all servers.
const allPath = "/mcp/all"

// requestsFile contains one search per line, followed by a tab and the matching tool.
const requestsFile = "internal/ops/testdata/requests.tsv"

// toolLists are the tools of servers, as the servers list them: a JSON array for each server.
type toolLists map[string][]byte

// surfaceCost is what a model reads and writes on one surface, in bytes.
type surfaceCost struct {
	surface             string
	tools               int
	start, search, call int // instructions and definitions; a search with its answer; a call with its answer, apart from the data
}

// benchSurfaceCosts measures the token cost of real servers' tools for a model on each surface. A token counts as four bytes.
func benchSurfaceCosts(o options, dir, binary string) error {
	lists, err := readToolLists(filepath.Join(o.shared, "real-servers"))
	if err != nil {
		return fmt.Errorf("the tool lists of real servers: %w (set -shared)", err)
	}
	servers, stop, err := serveToolLists(lists)
	if err != nil {
		return err
	}
	defer stop()
	proxy, err := startProxyForCosts(lists, servers, dir, binary)
	if err != nil {
		return err
	}
	defer proxy.stop()

	direct := surfaceCost{surface: "the servers themselves", call: callCost("read_text_file", "")}
	names := surfaceCost{surface: "lanes, of a client that loads names and searches by itself", call: callCost("filesystem__read_text_file", "")}
	for server, list := range lists {
		var tools []measuredTool
		if err := json.Unmarshal(list, &tools); err != nil {
			return fmt.Errorf("%s: %w", server, err)
		}
		direct.tools += len(tools)
		for _, t := range tools {
			direct.start += t.cost()
			names.start += len(server) + len("__") + len(t.Name)
		}
	}
	names.tools = direct.tools
	names.search = foundBySelf * direct.start / direct.tools
	gateway := "http://" + proxy.addr
	if err := awaitTools(gateway+allPath, direct.tools); err != nil {
		return err
	}
	all, err := measureStartCost(gateway, allPath)
	if err != nil {
		return err
	}
	all.call = names.call
	lanes := surfaceCost{surface: "lanes", call: names.call}
	for _, lane := range []string{"/read", "/write", "/destructive"} {
		one, err := measureStartCost(gateway, allPath+lane)
		if err != nil {
			return err
		}
		lanes.tools += one.tools
		lanes.start += one.start
	}
	search, err := measureStartCost(gateway, "/mcp")
	if err != nil {
		return err
	}
	if search.search, err = searchCost(gateway + "/mcp"); err != nil {
		return err
	}
	search.call = callCost("call_tool_read", "filesystem:read_text_file")
	printSurfaceCosts(len(lists), []surfaceCost{direct, all, lanes, names, search})
	return nil
}

func printSurfaceCosts(servers int, costs []surfaceCost) {
	fmt.Printf("tokens (bytes / 4) of %d servers; a session: %d searches, %d calls\n", servers, billedSearches, billedCalls)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tools\tat start\ta search\ta call\ta session\t  surface")
	for _, b := range costs {
		session := b.start + billedSearches*b.search + billedCalls*b.call
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s\n", b.tools, b.start/4, b.search/4, b.call/4, session/4, b.surface)
	}
	_ = w.Flush() // standard output
}

// measuredTool contains the parts of a definition that clients give to a model.
type measuredTool struct {
	Name, Description string
	InputSchema       json.RawMessage
}

func (t *measuredTool) cost() int { return len(t.Name) + len(t.Description) + len(t.InputSchema) }

// readToolLists reads the tool lists of the real servers in dir, without variants of another one.
func readToolLists(dir string) (toolLists, error) {
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var servers []struct {
		Slug    string
		Variant bool
	}
	if err := json.Unmarshal(index, &servers); err != nil {
		return nil, err
	}
	lists := toolLists{}
	for _, s := range servers {
		if s.Variant {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, s.Slug+".tools.json"))
		if err != nil {
			return nil, err
		}
		var list struct{ Tools json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Slug, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, list.Tools); err != nil {
			return nil, err
		}
		lists[s.Slug] = compact.Bytes()
	}
	return lists, nil
}

// serveToolLists serves each list as an MCP server at /NAME.
func serveToolLists(lists toolLists) (addr string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		reply := answerRequest(body, lists[strings.TrimPrefix(r.URL.Path, "/")])
		if reply == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply) // the client has disconnected
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return listener.Addr().String(), func() { _ = server.Close() }, nil
}

func startProxyForCosts(lists toolLists, servers, dir, binary string) (*process, error) {
	entries := map[string]any{}
	for name := range lists {
		entries[name] = map[string]any{"url": "http://" + servers + "/" + name, "trust": "auto"}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return startProxy(binary, dir, listen, string(text))
}

// awaitTools waits until a surface lists the given number of tools.
func awaitTools(url string, want int) error {
	got := 0
	for deadline := time.Now().Add(firstAnswerTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		headers, err := openSession(url)
		if err != nil {
			return err
		}
		var list struct{ Tools []json.RawMessage }
		if err := request(url, headers, "tools/list", "{}", &list); err != nil {
			return err
		}
		if got = len(list.Tools); got == want {
			return nil
		}
	}
	return fmt.Errorf("%s lists %d tools, want %d", url, got, want)
}

// measureStartCost returns the bytes that a client loads from a surface at its start.
func measureStartCost(gateway, path string) (surfaceCost, error) {
	url := gateway + path
	b := surfaceCost{surface: path}
	headers, err := openSession(url)
	if err != nil {
		return b, err
	}
	var opened struct{ Instructions string }
	if err := request(url, headers, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`, &opened); err != nil {
		return b, err
	}
	var list struct{ Tools []measuredTool }
	if err := request(url, headers, "tools/list", "{}", &list); err != nil {
		return b, err
	}
	b.tools, b.start = len(list.Tools), len(opened.Instructions)
	for _, t := range list.Tools {
		b.start += t.cost()
	}
	return b, nil
}

// searchCost returns the average cost of a search with its answer. The client searches in one session.
func searchCost(url string) (int, error) {
	text, err := os.ReadFile(requestsFile)
	if err != nil {
		return 0, fmt.Errorf("%w (run the command in the root of the repository)", err)
	}
	headers, err := openSession(url)
	if err != nil {
		return 0, err
	}
	sum, n := 0, 0
	for line := range strings.Lines(string(text)) {
		query, want, _ := strings.Cut(strings.TrimSpace(line), "\t")
		arguments, err := json.Marshal(map[string]string{"query": query})
		if err != nil {
			return 0, err
		}
		var result struct{ Content []struct{ Text string } }
		if err := request(url, headers, "tools/call", `{"name":"retrieve_tools","arguments":`+string(arguments)+`}`, &result); err != nil {
			return 0, err
		}
		sum += len("retrieve_tools") + len(arguments)
		found := false
		for _, block := range result.Content {
			sum += len(block.Text)
			found = found || strings.Contains(block.Text, want)
		}
		if !found {
			fmt.Printf("%q does not find %s\n", query, want)
		}
		n++
	}
	return sum / max(n, 1), nil
}

// callCost returns the bytes that a model writes for a call, without the tool's own arguments. For a calling tool, through is
// the name of the tool that it calls.
func callCost(name, through string) int {
	if through == "" {
		return len(name) + len("{}")
	}
	return len(name) + len(`{"name":"","args":{}}`) + len(through)
}

// request sends a request of a session and decodes its result.
func request(url string, headers map[string]string, method, params string, result any) error {
	target := callTarget{url: url, headers: headers, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)}
	if method == "initialize" {
		target.headers = nil
	}
	status, body, err := postCall(context.Background(), http.DefaultClient, target)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %.200s", url, method, status, body)
	}
	for line := range bytes.Lines(body) { // an event stream has the message in a data line
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok && len(data) > 1 {
			body = data
		}
	}
	var message struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return fmt.Errorf("%s %s: %w", url, method, err)
	}
	if message.Error != nil {
		return errors.New(method + ": " + string(message.Error))
	}
	return json.Unmarshal(message.Result, result)
}
