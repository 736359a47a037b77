package process_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/upstream/process"
)

func TestRun(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh: ", err)
	}
	said, err := process.RunCommand(t.Context(), []string{"/bin/sh", "-c", `echo $A; echo wrong >&2; exit 3`}, []string{"A=here", "PATH=/bin:/usr/bin"})
	if said != "here\nwrong\n" || err == nil || err.Error() != "exit status 3" {
		t.Errorf("%q, %v", said, err)
	}
	said, err = process.RunCommand(t.Context(), []string{"/bin/sh", "-c", `head -c 1000000 /dev/zero`}, []string{"PATH=/bin:/usr/bin"})
	if len(said) != 64<<10 || err != nil {
		t.Errorf("%d bytes, %v", len(said), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err = process.RunCommand(ctx, []string{"/bin/sh", "-c", "sleep 60 & sleep 60"}, nil); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("it was not ended: %v", err)
	}
	if _, err := process.RunCommand(t.Context(), []string{"/not/there"}, nil); err == nil || !strings.Contains(err.Error(), "/not/there") {
		t.Error(err)
	}
}
