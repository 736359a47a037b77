package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// The bash script works if the package bash-completion is not installed.
func TestBashWithoutItsPackage(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := newTestEnv(t).runCommand("completion", "bash").stdout
	for line, want := range map[string]string{
		"mcpproxy st":                      "reply: status",
		"mcpproxy call tool-read notes:li": "reply: list_notes list_all",
		"mcpproxy upstream get ":           "reply: notes",
		"mcpproxy serve --config ":         "reply: ",
	} {
		cmd := exec.Command(bash, "--noprofile", "--norc", "-c", script+`
mcpproxy() {
	case "$*" in
	"__complete call tool-read notes:li") printf 'notes:list_notes\nnotes:list_all\n:4\n' ;;
	"__complete upstream get ") printf 'notes\n:4\n' ;;
	"__complete serve --config ") printf 'json\n:8\n' ;;
	"__complete st") printf 'status\n:4\n' ;;
	esac
}
compopt() { :; }
COMP_LINE=$1 COMP_POINT=${#1}
__start_mcpproxy >&2
echo "reply: ${COMPREPLY[*]}" >&2`, "bash", line)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if got := strings.TrimSuffix(said.String(), "\n"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
