package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/testutil/faultfs"
	"mcpproxy/internal/testutil/faultrun"
	"mcpproxy/internal/testutil/volume"
)

// TestFaults makes the disk fail while the daemon is used, in some of the scenarios of `bench faults`. No call is lost,
// doubled or wrong, and the daemon recovers without help.
func TestFaults(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	seed := volume.Seed(t, 1) % 1_000_000
	short := map[string]bool{
		"full": true, "full, killed": true, "read-only": true, "read-only, killed": true, "EIO, killed": true,
		"spool file deleted": true, "spool deleted, killed": true, "data deleted": true,
		"inject fsync,fdatasync,pwrite64,fallocate:error=EIO": true, "power: read-only, killed": true,
	}
	for _, s := range faultrun.Scenarios() {
		if !short[s.Name] {
			continue
		}
		delete(short, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r, err := faultrun.RunScenario(t.Context(), s, faultrun.Options{
				Binary: binary, Dir: filepath.Join(t.TempDir(), "run"), Seed: seed, Clients: 8,
			})
			if err != nil {
				t.Fatalf("%s, seed %d: %v", s.Name, seed, err)
			}
			if !r.IsGood() || r.Acknowledged == 0 {
				t.Errorf("%s: replay it with go run ./bench faults -only %q -rounds 1 -seed %d\n%+v\n%s", s.Name, s.Name, seed, *r,
					strings.Join(r.Problems, "\n"))
			}
		})
	}
	if len(short) > 0 {
		t.Errorf("there is no scenario named %v", short)
	}
}

// TestDeadDiskIsReported: readyz and status report the failure, even without calls. All stored records stay readable on
// a full disk.
func TestDeadDiskIsReported(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	for name, fault := range map[string]struct{ begin, end func(m *faultfs.Mount) error }{
		"read-only": {(*faultfs.Mount).MakeReadOnly, (*faultfs.Mount).UnmountAndRepair},
		"full":      {(*faultfs.Mount).FillUp, (*faultfs.Mount).RemoveFiller},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
			dir := t.TempDir()
			disk, err := faultfs.MountExt4(filepath.Join(dir, "disk"), 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = disk.Close() })
			d := &daemon{t: t, dir: disk.Dir, address: freeAddress(t)}
			d.writeConfig(upstream.config("m", ""))
			d.start()
			t.Cleanup(func() {
				if d.cmd != nil {
					d.kill()
				}
			})
			d.awaitTools("m:echo")
			if r := d.legacy().call("call_tool_write", `{"name":"m:echo","args":{}}`); r.IsError {
				t.Fatal(r.text())
			}
			if status, body := d.rest("GET", "/activity?type=tool_call", ""); status != http.StatusOK || !strings.Contains(string(body), `"success"`) {
				t.Fatalf("status %d: %s", status, body)
			}
			if err := fault.begin(disk); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			d.awaitReadyz(http.StatusServiceUnavailable)
			t.Logf("reported after %v", time.Since(began).Round(time.Millisecond))
			before := upstream.calls.Load()
			r := d.legacy().call("call_tool_write", `{"name":"m:echo","args":{}}`)
			if !r.IsError || r.refusal(t).Code != "AUDIT_UNAVAILABLE" || upstream.calls.Load() != before {
				t.Errorf("a call returned %+v", r)
			}
			if code, out, _ := d.cli("status"); code != 0 || !strings.Contains(out, "calls are refused") {
				t.Errorf("status, code %d: %s", code, out)
			}
			if code, out, stderr := d.cli("activity", "list", "--type", "tool_call"); code != 0 || !strings.Contains(out, "success") {
				t.Errorf("activity list, code %d: %s%s", code, out, stderr)
			}
			if err := fault.end(disk); err != nil {
				t.Fatal(err)
			}
			began = time.Now()
			d.awaitReadyz(http.StatusOK)
			t.Logf("recovered after %v", time.Since(began).Round(time.Millisecond))
			if r := d.legacy().call("call_tool_write", `{"name":"m:echo","args":{}}`); r.IsError {
				t.Error(r.text())
			}
			d.stop()
		})
	}
}

// awaitReadyz waits until readyz answers with the status.
func (d *daemon) awaitReadyz(want int) {
	d.t.Helper()
	eventually(d.t, "the status of readyz", func() error {
		resp, err := http.Get("http://" + d.address + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
}

// TestTornTailIsNotDamage: the torn record after an ordinary kill is not an error, and is removed.
func TestTornTailIsNotDamage(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	for range 8 {
		if r := d.legacy().call("call_tool_write", `{"name":"m:echo","args":{}}`); r.IsError {
			t.Fatal(r.text())
		}
		d.kill()
		tearSpool(t, filepath.Join(d.dataDir(), "spool"))
		d.start()
		d.awaitTools("m:echo")
		if strings.Contains(d.stderr.String(), "damaged") {
			t.Fatalf("the daemon reports damage:\n%s", d.stderr)
		}
	}
	if torn, _ := filepath.Glob(filepath.Join(d.dataDir(), "spool", "*.torn-*")); len(torn) > 4 {
		t.Errorf("%d torn ends are kept", len(torn))
	}
	if _, body := d.rest("GET", "/activity?type=system", ""); strings.Contains(string(body), "damaged") {
		t.Errorf("%s", body)
	}
}

// tearSpool writes an incomplete entry, as a kill in the middle of a write leaves it.
func tearSpool(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil || len(segments) == 0 {
		t.Fatal("there is no spool", err)
	}
	path := segments[len(segments)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := strings.TrimRight(string(b), "\x00")
	last := used[strings.LastIndex(used[:len(used)-1], "\n")+1:]
	if err := os.WriteFile(path, []byte(used+last[:100]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDeletedSocketIsRecreated: after the socket is deleted, the command line fails only for a moment, and everything
// else continues.
func TestDeletedSocketIsRecreated(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")
	socket := api.SocketPath(d.dataDir())
	for range 2 {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the socket exists again", func() error {
			_, err := os.Stat(socket)
			return err
		})
		for range 3 {
			if code, out, stderr := d.cli("status"); code != 0 || !strings.Contains(out, d.address) {
				t.Fatalf("status, code %d: %s%s", code, out, stderr)
			}
		}
	}
	d.stop()
}
