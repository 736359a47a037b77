package classify

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
	"mcpproxy/internal/testutil/volume"
)

// helped is an option of a program, as its help text lists it.
type helped struct {
	name    string
	valued  bool // has a value, or may have one
	effects bool // writes, loads or runs something
}

// helpTexts returns the recorded options of programs, and of their verbs.
func helpTexts(t testing.TB) (programs []string, options map[string][]helped) {
	t.Helper()
	text, err := os.ReadFile("testdata/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	options = map[string][]helped{}
	for _, s := range sectionfile.Parse(string(text)) {
		programs = append(programs, s.Head)
		for _, w := range s.Words() {
			name, effects := strings.CutPrefix(w, "!")
			name, _, valued := strings.Cut(name, "=")
			options[s.Head] = append(options[s.Head], helped{name, valued, effects})
		}
	}
	return programs, options
}

// linesWith returns command lines of a program with an option in each form that programs accept.
func linesWith(program string, all []helped, o helped) []string {
	first, verb, _ := strings.Cut(program, " ")
	operand := operandOf(program)
	forms := []string{o.name}
	if long := strings.HasPrefix(o.name, "--"); long || strings.HasPrefix(o.name, "-") && len(o.name) > 2 {
		forms = append(forms, o.name+"=1", o.name+"=true", o.name+"=false")
		if name := o.name; long && len(name) > 5 {
			forms = append(forms, name[:len(name)-1], name[:len(name)-1]+"=1", name[:4])
		}
	} else if len(o.name) == 2 {
		forms = append(forms, o.name+"1")
		for _, other := range all {
			if len(other.name) == 2 && !other.valued && !other.effects && other.name != o.name {
				forms = append(forms, other.name+o.name[1:])
				break
			}
		}
	}
	var lines []string
	for _, form := range forms {
		lines = append(lines, program+" "+form+" "+operand, program+" "+form+" 1 "+operand, program+" "+operand+" "+form+" 1", program+" '"+form+"' 1")
		if verb != "" {
			lines = append(lines, first+" "+form+" "+verb+" "+operand)
		}
	}
	return lines
}

// operandOf returns an operand that the program can read.
func operandOf(program string) string {
	switch first, _, _ := strings.Cut(program, " "); first {
	case "tar":
		return "-tf a.tar"
	case "unzip", "zipinfo":
		return "-l a.zip"
	case "gzip", "gunzip", "zcat", "zgrep":
		return "-c a.gz"
	case "bzip2", "xz", "zstd", "xzcat":
		return "-c a"
	case "env", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "xargs", "strace":
		return "ls"
	case "curl", "wget":
		return "http://127.0.0.1:9/a"
	case "dpkg":
		return "-L bash"
	case "date", "hostname", "arch", "git", "systemctl", "journalctl", "mount", "sysctl", "dmesg", "ps", "docker", "kubectl", "npm", "terraform", "pip", "cargo", "go":
		return ""
	}
	return "a"
}

// TestOptionsOfHelpTexts checks that a line with an option that writes, loads or runs something is never classified as a read, in any
// form of the option.
func TestOptionsOfHelpTexts(t *testing.T) {
	programs, options := helpTexts(t)
	every := volume.FullOrQuick(1, 10) // share of the lines without an effect
	lines, effects, reads, skipped, names := 0, 0, 0, 0, map[string]bool{}
	for _, program := range programs {
		first, _, _ := strings.Cut(program, " ")
		names[first] = true
		for _, o := range options[program] {
			for _, line := range linesWith(program, options[program], o) {
				if skipped++; !o.effects && skipped%every != 0 {
					continue
				}
				lines++
				read := classifyShell(line).Operation == policy.Read
				if read {
					reads++
				}
				if o.effects {
					if effects++; read {
						t.Errorf("%s: classified as a read", line)
					}
				}
			}
		}
		for _, form := range []string{"--no-such-option", "--no-such-option=1", "-\u00e9"} {
			if line := program + " " + form + " " + operandOf(program); classifyShell(line).Operation == policy.Read {
				t.Errorf("%s: an unknown option is classified as a read", line)
			}
		}
	}
	t.Logf("%d lines of %d programs, %d of them with an option that has effects; %d are classified as reads", lines, len(names), effects, reads)
	if lines < 5_000 || len(names) < 40 {
		t.Errorf("only %d lines of %d programs", lines, len(names))
	}
}
