package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed secrets.txt
var secretsText string

//go:embed syscalls.txt
var syscallsText string

// SecretGroup is a group of paths below the home folder that mode "on" cannot read.
type SecretGroup struct {
	Title string
	Paths []string // relative to the home folder
}

// SecretPaths returns what mode "on" cannot read.
func SecretPaths() (groups []SecretGroup) {
	for line := range strings.Lines(secretsText) {
		line = strings.TrimRight(line, "\n")
		path, isPath := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case isPath:
			last := &groups[len(groups)-1]
			last.Paths = append(last.Paths, path)
		default:
			groups = append(groups, SecretGroup{Title: line})
		}
	}
	return groups
}

// systemFolders are the folders and files of the system that each sandbox can read. Those that do not exist are
// ignored. /etc is not listed as a whole, because it contains keys.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap", "/run/current-system",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/crypto-policies", "/etc/hosts", "/etc/host.conf", "/etc/hostname", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/services", "/etc/protocols", "/etc/mime.types", "/etc/magic",
	"/etc/os-release", "/etc/lsb-release", "/etc/gitconfig", "/etc/fonts", "/etc/terminfo", "/etc/locale.alias", "/etc/locale.conf", "/etc/inputrc", "/etc/bash.bashrc", "/etc/profile",
	"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// systemSecrets are the parts of systemFolders that no sandbox can read.
var systemSecrets = []string{"/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/nssdb", "/opt/containerd"}

// devices are the device files that each sandbox can read and write.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// isWithin reports whether path is dir, or below it.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// secretsOf returns the absolute paths of the secrets in a home folder, and of private: the own files of MCPProxy. A
// path behind a symbolic link is listed twice.
func secretsOf(home string, private []string) (all []string) {
	add := func(path string) {
		all = append(all, path)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			all = append(all, real)
		}
	}
	for _, p := range private {
		add(p)
	}
	if home != "" {
		for _, g := range SecretPaths() {
			for _, p := range g.Paths {
				add(filepath.Join(home, p))
			}
		}
	}
	for _, p := range systemSecrets {
		add(p)
	}
	return all
}

// withoutSecrets returns paths that together cover path except secrets. It does not follow symbolic links below path.
func withoutSecrets(path string, secrets []string) (covering []string) {
	if slices.ContainsFunc(secrets, func(s string) bool { return isWithin(path, s) }) {
		return nil
	}
	if !slices.ContainsFunc(secrets, func(s string) bool { return isWithin(s, path) }) {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // a file, or not readable
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			covering = append(covering, withoutSecrets(filepath.Join(path, e.Name()), secrets)...)
		}
	}
	return covering
}

// access is what a sandbox can read and write: absolute paths without symbolic links.
type access struct {
	read, write []string
}

// grantedAccess returns the access of rules whose paths are absolute. installation is what the program needs.
func grantedAccess(r Rules, home string, private, installation []string) (access, error) {
	if home, _ = filepath.EvalSymlinks(home); home == "/" {
		home = "" // not the home of a user
	}
	secrets := secretsOf(home, private)
	var a access
	for _, p := range r.Write {
		// A server may have replaced a path inside a folder that it can write.
		if slices.ContainsFunc(r.Write, func(w string) bool { return p != w && isWithin(p, w) }) {
			continue
		}
		real, err := resolveNamed("write", p)
		if err != nil {
			return access{}, err
		}
		for _, s := range secrets {
			if isWithin(s, real) && s != real {
				return access{}, fmt.Errorf("sandbox.write has %s, which contains %s: name folders that contain no secrets", p, s)
			}
		}
		if slices.ContainsFunc(private, func(s string) bool { return isWithin(real, s) }) {
			return access{}, fmt.Errorf("sandbox.write has %s, which belongs to MCPProxy: name another folder", p)
		}
		a.write = append(a.write, real)
	}
	for _, p := range r.Read {
		if slices.ContainsFunc(r.Write, func(w string) bool { return isWithin(p, w) }) { // readable already
			continue
		}
		real, err := resolveNamed("read", p)
		if err != nil {
			return access{}, err
		}
		if slices.ContainsFunc(private, func(s string) bool { return isWithin(real, s) }) {
			return access{}, fmt.Errorf("sandbox.read has %s, which belongs to MCPProxy: name another folder", p)
		}
		// A secret that is named, or a part of it, can be read.
		a.read = append(a.read, withoutSecrets(real, slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return isWithin(real, s) }))...)
	}
	if r.Mode == On && home != "" {
		a.read = append(a.read, withoutSecrets(home, secrets)...)
	}
	for _, p := range slices.Concat(systemFolders, installation) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			a.read = append(a.read, withoutSecrets(real, secrets)...)
		}
	}
	return a, nil
}

// resolveNamed returns a path that the user named, without symbolic links. It must exist.
func resolveNamed(key, path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("sandbox.%s has %s, which does not exist: create it, or remove it from sandbox.%s", key, path, key)
	case err != nil:
		return "", fmt.Errorf("sandbox.%s has %s: %w", key, path, err)
	}
	return real, nil
}
