//go:build unix

package process

import (
	"os"
	"testing"
)

func TestMasker(t *testing.T) {
	t.Parallel()
	m := NewMasker([]string{"abc", "pass", "password1", "a b/\"c"})
	for in, want := range map[string]string{
		"abc":                     "abc",
		"pass":                    "[masked]",
		"xpassword1x pass":        "x[masked]x [masked]",
		"http://h/?k=a+b%2F%22c":  "http://h/?k=[masked]",
		"http://h/a%20b%2F%22c/":  "http://h/[masked]/",
		`open "/tmp/a b/\"c": no`: `open "/tmp/[masked]": no`,
	} {
		if got := m.MaskText(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := (Masker{}).MaskText("pass"); got != "pass" {
		t.Error(got)
	}
	if err := m.MaskError(os.ErrNotExist); err != os.ErrNotExist {
		t.Error(err)
	}
}
