//go:build unix

package ops_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// BenchmarkVerify verifies a log of b.N calls, exports it with bodies and verifies the export. Run it alone, with
// -benchtime 1000000x.
func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), KeyFile: filepath.Join(dir, "key")}, db)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := errors.Join(l.Close(b.Context()), db.Close()); err != nil {
			b.Log(err)
		}
	}()
	for i := range b.N {
		r := call("notes", "", "write")
		r.Arguments = fmt.Appendf(nil, `{"owner":"octo-org","repo":"hello-world","title":"It does not start %d","labels":["bug","help wanted"]}`, i)
		if err := l.Begin(&r); err != nil {
			b.Fatal(err)
		}
		if err := l.End(r.ID, activity.Outcome{Status: activity.Success, Duration: time.Millisecond, Response: []byte(`{"content":[{"type":"text","text":"Created issue 4711 in octo-org/hello-world: It does not start."}]}`)}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	measure := func(what string, do func() error) {
		began, used := time.Now(), processTime()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %v, %v of CPU time", what, time.Since(began).Round(time.Millisecond), (processTime() - used).Round(time.Millisecond))
		b.ReportMetric((processTime()-used).Seconds()/float64(b.N)*1e6, what+"-cpu-s/million")
	}
	measure("log", func() error {
		v, err := l.Verify(b.Context())
		if !v.OK {
			err = errors.Join(err, fmt.Errorf("%+v", v.FirstBreak))
		}
		return err
	})
	path := filepath.Join(dir, "log.jsonl")
	measure("export", func() error {
		f, err := ops.NewActivityHistory(l, nil).Export(b.Context(), ops.Caller{}, ops.ExportQuery{Bodies: true})
		if err != nil {
			return err
		}
		out, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Stream(b.Context(), out), out.Close())
	})
	measure("file", func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			b.Logf("%d MB", info.Size()>>20)
		}
		v, err := ops.VerifyExport(f, l.SigningKey().String())
		if !v.OK || v.Records < int64(b.N) {
			err = errors.Join(err, fmt.Errorf("%+v, %+v", v, v.FirstBreak))
		}
		return err
	})
}

// processTime returns the CPU time of the process.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
