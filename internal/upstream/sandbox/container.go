package sandbox

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/process"
)

// engines are the container engines, in the order of preference.
var engines = []string{"podman", "docker"}

// Engine returns the path of the container engine; "" if none is installed.
func Engine(path string) string {
	for _, name := range engines {
		if file := process.FindCommand(name, path); file != "" {
			return file
		}
	}
	return ""
}

// containerCommand returns the command that runs c in a container. The engine is told the names of the variables, not
// their values, because others can read its arguments.
func containerCommand(c process.Command, r Rules, private []string) (process.Command, error) {
	engine := Engine(c.Env["PATH"])
	if engine == "" {
		return c, errNotResolved("no container engine is found: install Docker or Podman")
	}
	if _, err := grantedAccess(Rules{Mode: Container, Read: r.Read, Write: r.Write}, "", private, nil); err != nil {
		return c, err
	}
	name := "mcpproxy-" + strings.ToLower(rand.Text())
	args := []string{"run", "--rm", "--interactive", "--init", "--name", name, "--read-only", "--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--env", "HOME=/tmp"}
	if pin.ProgramName(engine) == "podman" {
		args = append(args, "--userns", "keep-id")
	} else if uid := os.Getuid(); uid >= 0 { // Windows has none
		args = append(args, "--user", strconv.Itoa(uid)+":"+strconv.Itoa(os.Getgid()))
	}
	if !r.HasNetwork() {
		args = append(args, "--network", "none")
	}
	for _, mount := range []struct {
		paths  []string
		option string
	}{{r.Read, ",readonly"}, {r.Write, ""}} {
		for _, p := range mount.paths {
			if strings.ContainsAny(p, `,"`) {
				return c, errNotResolved("the path %s has a comma or a quotation mark, which a container cannot mount", p)
			}
			args = append(args, "--mount", fmt.Sprintf("type=bind,source=%s,target=%s%s", p, p, mount.option))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.Env)) {
		if n != "HOME" && n != "PATH" { // of this machine
			args = append(args, "--env", n)
		}
	}
	if c.Dir != "" && slices.ContainsFunc(slices.Concat(r.Read, r.Write), func(p string) bool { return isWithin(filepath.Clean(c.Dir), p) }) {
		args = append(args, "--workdir", c.Dir)
	}
	args = append(append(args, r.Image, c.Name), c.Args...)
	return process.Command{Name: engine, Args: args, Env: c.Env, Dir: c.Dir, Installs: c.Installs, AfterExit: func() {
		_ = exec.Command(engine, "rm", "--force", name).Run() // if the engine's client was killed
	}}, nil
}
