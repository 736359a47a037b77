package archtest

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modulesText lists the third-party modules that the program and its tests use, each with the reason.
//
//go:embed modules.txt
var modulesText string

var allowedModules = func() map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(modulesText) {
		module, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		reasons[module] = reason
	}
	return reasons
}()

// directRequirements returns the direct requirements of go.mod.
func directRequirements(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "require ")
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") { // not "// indirect"
			modules = append(modules, fields[0])
		}
	}
	if len(modules) == 0 {
		t.Fatal("no requirements found in go.mod")
	}
	return modules
}

func TestModulesHaveReasons(t *testing.T) {
	for _, m := range directRequirements(t) {
		if allowedModules[m] == "" {
			t.Errorf("go.mod requires %s: say in modules.txt why, or do without it", m)
		}
	}
}

// TestNoReplaceDirectives: a build must not depend on a directory or a fork.
func TestNoReplaceDirectives(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %s", strings.TrimSpace(line))
		}
	}
}
