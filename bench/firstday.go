package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
)

// firstDayRun simulates the first day of a user with many servers. All run with npx, first with an empty npm cache, then with the cache
// that the first run filled.
type firstDayRun struct {
	binary string
	dir    string
	limit  time.Duration
	start  time.Time
	client *api.Client
	proxy  *process

	ready   map[string]time.Duration
	failed  map[string][]string // the reported errors of each server that failed
	load    processTreeLoad
	maxLoad struct{ own, machine float64 }
	calls   []time.Duration
	wrong   int // calls that failed
}

// benchFirstDay runs both cases and then starts each package without MCPProxy.
func benchFirstDay(o options, dir, binary string) error {
	cache, days := filepath.Join(dir, "npm"), []string{"empty npm cache", "warm npm cache"}
	if o.cache != "" {
		cache = o.cache
		if _, err := os.Stat(cache); err == nil {
			days = days[1:]
		}
	}
	servers := parseFirstDayServers(dir, cache, o.only)
	var missed []string
	for _, day := range days {
		d := &firstDayRun{binary: binary, dir: dir, limit: o.limit, ready: map[string]time.Duration{}, failed: map[string][]string{}}
		if err := d.startAndWatch(servers); err != nil {
			return err
		}
		missed = append(missed, d.printReport(day, servers)...)
	}
	broken := 0
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		took, err := servers[name].startByHand(dir)
		if err != nil {
			broken++
			fmt.Printf("  by hand: %s: %v\n", name, err)
		} else if o.verbose {
			fmt.Printf("  by hand: %s answers after %.1f s\n", name, took.Seconds())
		}
	}
	fmt.Printf("by hand with the same cache: %d of %d run\n", len(servers)-broken, len(servers))
	if len(missed) > 0 || broken > 0 {
		return fmt.Errorf("not ready: %s; %d do not run by hand", strings.Join(missed, ", "), broken)
	}
	return nil
}

// npmServer is one server of the configuration.
type npmServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// parseFirstDayServers returns servers from npm that run without an account.
func parseFirstDayServers(dir, cache, only string) map[string]*npmServer {
	work := filepath.Join(dir, "work")
	_ = os.MkdirAll(work, 0o700) // servers report an error if it does not exist
	env := func(add ...string) map[string]string {
		all := map[string]string{"npm_config_cache": cache, "npm_config_update_notifier": "false",
			"PUPPETEER_SKIP_DOWNLOAD": "true", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"} { // required to reach the registry
			if value := os.Getenv(name); value != "" {
				all[name] = value
			}
		}
		for _, kv := range add {
			name, value, _ := strings.Cut(kv, "=")
			all[name] = value
		}
		return all
	}
	all := map[string]*npmServer{}
	for _, line := range strings.Split(strings.TrimSpace(firstDayList), "\n") {
		fields := strings.Split(line, "|")
		words := strings.Fields(strings.ReplaceAll(fields[1], "@W@", work))
		all[fields[0]] = &npmServer{"npx", append([]string{"-y"}, words...), env(strings.Fields(strings.ReplaceAll(fields[2], "@W@", work))...)}
		if !strings.Contains(fields[0], only) {
			delete(all, fields[0])
		}
	}
	return all
}

// firstDayList has lines of: name | package and arguments | environment.
const firstDayList = `
everything|@modelcontextprotocol/server-everything@2026.8.31 stdio|
filesystem|@modelcontextprotocol/server-filesystem@2026.8.31 @W@|
filesystem2|@modelcontextprotocol/server-filesystem@2026.8.31 @W@ /tmp|
memory|@modelcontextprotocol/server-memory@2026.8.31|MEMORY_FILE_PATH=@W@/mem.jsonl
sequentialthinking|@modelcontextprotocol/server-sequential-thinking@2026.8.31|
playwright|@playwright/mcp@0.0.83 --headless|
chromedevtools|chrome-devtools-mcp@1.11.0 --headless --no-usage-statistics|CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1
context7|@upstash/context7-mcp@4.1.1|
mongodb|mongodb-mcp-server@3.0.4|MDB_MCP_TELEMETRY=disabled
n8n|n8n-mcp@2.87.0|MCP_MODE=stdio N8N_MCP_TELEMETRY_DISABLED=true LOG_LEVEL=error DISABLE_CONSOLE_OUTPUT=true
git|@cyanheads/git-mcp-server@2.15.3|MCP_TRANSPORT_TYPE=stdio MCP_LOG_LEVEL=error
kubernetes|mcp-server-kubernetes@4.1.7|
notion|@notionhq/notion-mcp-server@2.5.2|
eslint|@eslint/mcp@0.3.13|
antvchart|@antv/mcp-server-chart@0.9.10|
execplaywright|@executeautomation/playwright-mcp-server@1.0.12|
github|@modelcontextprotocol/server-github@2025.4.8|
postgres|@modelcontextprotocol/server-postgres@0.6.2 postgresql://localhost/none|
puppeteer|@modelcontextprotocol/server-puppeteer@2025.5.12|
azure|@azure/mcp@2.0.5 server start|AZURE_MCP_COLLECT_TELEMETRY=false DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
taskmaster|task-master-ai@0.43.1|
angular|@angular/cli@22.2.7 mcp|NG_CLI_ANALYTICS=false
mui|@mui/mcp@0.1.6|
nextdevtools|next-devtools-mcp@0.4.0|NEXT_TELEMETRY_DISABLED=1
excel|@negokaz/excel-mcp-server@0.12.0|
browsermcp|@browsermcp/mcp@0.1.3|
hello|mcp-hello-world@1.1.2|
coderunner|mcp-server-code-runner@0.1.8|
echarts|mcp-echarts@0.7.1|
files|@agent-infra/mcp-server-filesystem@1.2.29 --allowed-directories @W@|
commands|@agent-infra/mcp-server-commands@1.2.18|
heroui|@heroui/react-mcp@1.1.2|
`

// startAndWatch starts MCPProxy with the servers and watches them until all are ready or
// the limit is reached.
func (d *firstDayRun) startAndWatch(servers map[string]*npmServer) error {
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	d.start = time.Now()
	if d.proxy, err = startProxy(d.binary, d.dir, listen, string(config)); err != nil {
		return err
	}
	defer d.proxy.stop()
	if _, err := openSession("http://" + listen + "/mcp"); err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(d.dir, "data", "api_key"))
	if err != nil {
		return err
	}
	d.client = api.NewClient(api.Endpoint{URL: "http://" + listen, Key: strings.TrimSpace(string(key))})
	defer d.client.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for len(d.ready) < len(servers) && time.Since(d.start) < d.limit {
		<-tick.C
		if err := d.pollServers(); err != nil {
			return err
		}
	}
	return nil
}

// pollServers stores the state of all servers and the load, and calls one that is ready.
func (d *firstDayRun) pollServers() error {
	ctx, cancel := context.WithTimeout(context.Background(), firstAnswerTimeout)
	defer cancel()
	all, err := api.ListServers.Call(ctx, d.client, ops.Nothing{})
	if err != nil {
		return err
	}
	for _, v := range all.Servers {
		if v.State == "ready" && d.ready[v.Name] == 0 {
			d.ready[v.Name] = time.Since(d.start)
		}
		if v.LastError != "" && !slices.Contains(d.failed[v.Name], v.LastError) {
			d.failed[v.Name] = append(d.failed[v.Name], v.LastError)
		}
	}
	if d.ready["everything"] != 0 {
		start := time.Now()
		if _, err := api.CallTool.Call(ctx, d.client, api.CallInput{Variant: policy.CallToolRead.String(), Name: "everything:echo", Args: json.RawMessage(`{"message":"hello"}`)}); err != nil {
			d.wrong++
		}
		d.calls = append(d.calls, time.Since(start))
	}
	d.maxLoad.own = max(d.maxLoad.own, d.load.sample(d.proxy.cmd.Process.Pid))
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		machine, _ := strconv.ParseFloat(strings.Fields(string(raw))[0], 64)
		d.maxLoad.machine = max(d.maxLoad.machine, machine)
	}
	return nil
}

// printReport prints the figures and returns the servers that were not ready.
func (d *firstDayRun) printReport(day string, servers map[string]*npmServer) (missed []string) {
	var times []time.Duration
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		took, ok := d.ready[name]
		if !ok {
			missed = append(missed, name)
			continue
		}
		times = append(times, took)
	}
	slices.Sort(times)
	slices.Sort(d.calls)
	fmt.Printf("%s: %d of %d ready", day, len(times), len(servers))
	if len(times) > 0 {
		fmt.Printf(", the first after %.1f s, half after %.1f s, all of these after %.1f s", times[0].Seconds(), times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
	}
	fmt.Printf("\n  load of MCPProxy and its servers (1 min, as loadavg): at most %.1f; of the machine: at most %.1f\n", d.maxLoad.own, d.maxLoad.machine)
	if len(d.calls) > 0 {
		fmt.Printf("  %d calls of a server that is ready meanwhile: median %s, worst %s, %d failed\n", len(d.calls), formatMilliseconds(d.calls[len(d.calls)/2]), formatMilliseconds(d.calls[len(d.calls)-1]), d.wrong)
	}
	fmt.Printf("  servers that failed at least once: %d\n", len(d.failed))
	for _, name := range slices.Sorted(maps.Keys(d.failed)) {
		fmt.Printf("    %s: %s\n", name, strings.Join(d.failed[name], "; "))
	}
	return missed
}

// startByHand starts the server without MCPProxy and waits for its response.
func (s *npmServer) startByHand(dir string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Command, s.Args...)
	cmd.Dir = dir
	runInOwnProcessGroup(cmd)
	cmd.Env = os.Environ()
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it is killed
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`+"\n"); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"serverInfo"`) {
			return time.Since(start), nil
		}
	}
	return 0, errors.Join(errors.New("it did not answer initialize"), lines.Err())
}

// processTreeLoad is the one-minute load average of a process and its
// descendants, without other work on the machine.
type processTreeLoad struct {
	value float64
	last  time.Time
}

// sample counts the threads that are running or waiting for a disk.
func (l *processTreeLoad) sample(root int) float64 {
	parents, active := map[int]int{}, map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat") // the pattern is well-formed
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		if fields[0] == "R" || fields[0] == "D" {
			active[pid]++
		}
	}
	n := 0
	for pid, count := range active {
		for up := pid; up > 1; up = parents[up] {
			if up == root {
				n += count
				break
			}
		}
	}
	now := time.Now()
	if !l.last.IsZero() {
		keep := math.Exp(-now.Sub(l.last).Seconds() / 60)
		l.value = l.value*keep + float64(n)*(1-keep)
	}
	l.last = now
	return l.value
}
