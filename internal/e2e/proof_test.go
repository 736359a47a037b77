package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// filesWith returns the files in a folder that contain a text.
func filesWith(t *testing.T, dir, text string) (in []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			in = append(in, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// The log is verified and exported. The export is verified after the daemon has stopped, and a change in it is
// detected. After a field is erased, the log and the export still verify.
func TestVerifyAndExportTheLog(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	a := d.legacy()
	for i := range 20 {
		if _, err := a.tryCall("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"mark":"marked-%d"},"intent_reason":"because-%d"}`, i, i)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := d.cli(args...)
		if code != want {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	said, _ := run(0, "activity", "verify")
	if !strings.Contains(said, "Signed with ") {
		t.Errorf("%s", said)
	}
	key := strings.TrimSpace(said[strings.Index(said, "Signed with ")+len("Signed with "):])
	var page struct{ Activities []struct{ ID string } }
	list, _ := run(0, "activity", "list", "--search", "marked-7", "-o", "json")
	if err := json.Unmarshal([]byte(list), &page); err != nil || len(page.Activities) != 1 {
		t.Fatalf("%s, %v", list, err)
	}
	id := page.Activities[0].ID
	if _, stderr := run(2, "activity", "redact", id, "--field", "arguments"); !strings.Contains(stderr, "--yes") {
		t.Errorf("%s", stderr)
	}
	run(0, "activity", "redact", id, "--field", "arguments,response", "--field", "reason", "--yes")
	shown, _ := run(0, "activity", "show", id)
	if !strings.Contains(shown, "Erased\n") || !strings.Contains(shown, "arguments") || strings.Contains(shown, "marked-7") || strings.Contains(shown, "because-7") {
		t.Errorf("%s", shown)
	}
	for _, text := range []string{"marked-7", "because-7"} {
		if in := filesWith(t, d.dataDir(), text); in != nil {
			t.Errorf("%s is in %v", text, in)
		}
	}
	run(0, "activity", "verify")
	file := filepath.Join(t.TempDir(), "log.jsonl")
	run(0, "activity", "export", "--include-bodies", "--file", file)
	short, _ := run(0, "activity", "export", "--status", "success")
	table, _ := run(0, "activity", "export", "--format", "csv", "--type", "tool_call")
	if strings.Count(table, "\n") != 21 || !strings.HasPrefix(table, "id,time,type") {
		t.Errorf("%s", table)
	}
	d.kill()

	said, _ = run(0, "activity", "verify", file, "--key", key)
	if !strings.Contains(said, "3 values were erased") || !strings.Contains(said, key) {
		t.Errorf("%s", said)
	}
	part := filepath.Join(t.TempDir(), "part.jsonl")
	if err := os.WriteFile(part, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, _ = run(0, "activity", "verify", part); !strings.Contains(said, "filtered") {
		t.Errorf("%s", said)
	}
	if _, stderr := run(1, "activity", "verify", file, "--key", strings.Repeat("0", 64)); !strings.Contains(stderr, key) || strings.Contains(stderr, "was changed") {
		t.Errorf("%s", stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, bytes.Replace(text, []byte("because-11"), []byte("because-99"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr := run(1, "activity", "verify", part, "-o", "json"); !strings.Contains(stderr, "UNPROVEN") || !strings.Contains(stdout, `"ok": false`) {
		t.Errorf("%s\n%s", stdout, stderr)
	}
	d.start()
	run(0, "activity", "verify")
	if mode, err := os.Stat(filepath.Join(d.dataDir(), "activity_key")); err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", mode, err)
	}
}

// The daemon is killed while it erases fields. After the next start, every field that is recorded as erased is gone,
// the other fields are complete, and the chain verifies.
func TestKilledWhileErasing(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	for round := range 4 {
		a := d.legacy()
		var ids []string
		for i := range 30 {
			if _, err := a.tryCall("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"mark":"marked-%d-%d-"}}`, round, i)); err != nil {
				t.Fatal(err)
			}
		}
		var page struct {
			Activities []struct {
				ID        string
				Arguments struct{ Mark string }
				Erased    []struct{ Field string }
			}
		}
		_, body := d.rest("GET", fmt.Sprintf("/activity?limit=30&q=marked-%d*&type=tool_call", round), "")
		if err := json.Unmarshal(body, &page); err != nil || len(page.Activities) != 30 {
			t.Fatalf("%s, %v", body, err)
		}
		marks := map[string]string{}
		for _, r := range page.Activities {
			ids = append(ids, r.ID)
			marks[r.ID] = r.Arguments.Mark
		}
		var asked atomic.Int64
		killed, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for i, id := range ids {
				if i == 5+round*5 {
					close(killed)
				}
				asked.Add(1)
				code, _, _ := d.cli("activity", "redact", id, "--field", "arguments", "--field", "response", "--yes")
				if code != 0 {
					return // the daemon has ended
				}
			}
		}()
		<-killed
		d.kill()
		<-ended
		d.start()
		if code, stdout, stderr := d.cli("activity", "verify"); code != 0 {
			t.Fatalf("%s%s", stdout, stderr)
		}
		erased := 0
		for _, id := range ids {
			_, body := d.rest("GET", "/activity/"+id, "")
			gone := bytes.Contains(body, []byte(`"erased":`))
			if in := filesWith(t, d.dataDir(), marks[id]); gone && in != nil {
				t.Errorf("%s is in %v", marks[id], in)
			} else if !gone && !bytes.Contains(body, []byte(marks[id])) {
				t.Errorf("%s is neither erased nor complete: %s", id, body)
			}
			if gone {
				erased++
			}
		}
		if erased < 5 || int64(erased) > asked.Load() {
			t.Errorf("%d of %d are erased", erased, asked.Load())
		}
	}
}

// A watch continues at its position when the daemon is killed and restarted. It omits no record and repeats none.
func TestWatchHasNoGap(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	const most = 40
	watching := exec.Command(binary, "--config", d.configPath(), "--data-dir", d.dataDir(), "activity", "watch", "--type", "tool_call", "--limit", fmt.Sprint(most), "-o", "json")
	watching.Env = d.environ()
	out, err := watching.StdoutPipe()
	if err == nil {
		err = watching.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, most), make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	var all, seen []string
	a, killed := d.legacy(), false
	for done := false; !done; {
		if len(seen) > most/2 && !killed {
			killed = true
			d.kill()
			d.start()
			a = d.legacy()
		}
		if _, err := a.tryCall("call_tool_write", `{"name":"m:echo","args":{}}`); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			select {
			case line := <-lines:
				var e struct{ ID string }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatalf("%s, %v", line, err)
				}
				seen = append(seen, e.ID)
			case <-ended:
				more, done = len(lines) > 0, len(lines) == 0
			case <-time.After(5 * time.Millisecond):
				more = false
			}
		}
	}
	if err := watching.Wait(); err != nil || !killed {
		t.Fatalf("%v, killed: %v", err, killed)
	}
	for cursor := ""; ; {
		var page struct {
			Activities []struct{ ID string }
			NextCursor string `json:"next_cursor"`
		}
		_, body := d.rest("GET", "/activity?type=tool_call&limit=1000&cursor="+cursor, "")
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Activities {
			all = append([]string{r.ID}, all...)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	text := strings.Join(all, " ")
	if len(seen) != most || !strings.Contains(text, strings.Join(seen, " ")) {
		t.Errorf("%d records were shown: %v\nwant %v", len(seen), seen, all)
	}
}

// A watch accepts the filters of a list, for past and for new records.
func TestWatchAcceptsListFilters(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	a := d.legacy()
	call := func(word, sensitivity string) {
		t.Helper()
		if r := a.call("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"text":%q},"intent_data_sensitivity":%q}`, word, sensitivity)); r.IsError {
			t.Fatalf("%+v", r)
		}
	}
	type told struct{ ID, Cursor, Request_id, Session_id string }
	watch := func(args ...string) (all []told) {
		t.Helper()
		code, stdout, stderr := d.cli(append([]string{"activity", "watch", "-o", "json"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
		for line := range strings.Lines(stdout) {
			var e told
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, e)
		}
		return all
	}
	call("alpha", "private")
	call("beta", "public")
	call("alpha", "public")
	now := time.Now().Format(time.RFC3339Nano)
	call("alpha", "private")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--search", "alpha"}, 2}, {[]string{"--search", "alpha", "--sensitivity", "private"}, 1}, {[]string{"--sensitivity", "public"}, 2},
		{[]string{"--type", "tool_call"}, 3}, {[]string{"--search", "gamma"}, 0},
	} {
		if all := watch(append(c.args, "--since", "1h", "--until", now)...); len(all) != c.want {
			t.Errorf("%v: %v", c.args, all)
		}
	}
	if all := watch("--until", now); len(all) != 0 {
		t.Errorf("old records are sent although none were requested: %v", all)
	}
	first := watch("--since", "1h", "--search", "beta", "--limit", "1")[0]
	for id, want := range map[string]int{first.Request_id: 3, "another": 0} {
		if all := watch("--since", "1h", "--until", now, "--request-id", id, "--session", first.Session_id); len(all) != want {
			t.Errorf("by request %s: %v", id, all)
		}
	}

	// The watch loads the record where an event lacks the filtered field.
	ended := make(chan []told)
	go func() { ended <- watch("--search", "gamma", "--sensitivity", "private", "--limit", "3") }()
	var live []told
	for live == nil {
		call("gamma", "public")
		call("delta", "private")
		call("gamma", "private")
		select {
		case live = <-ended:
		case <-time.After(5 * time.Millisecond):
		}
	}
	for i, cursor := range []string{live[0].Cursor, live[1].Cursor} { // exactly the records after the cursor
		if rest := watch("--cursor", cursor, "--search", "gamma", "--sensitivity", "private", "--limit", fmt.Sprint(2-i)); fmt.Sprint(rest) != fmt.Sprint(live[i+1:]) {
			t.Errorf("behind %s: %v, want %v", cursor, rest, live[i+1:])
		}
	}
}
