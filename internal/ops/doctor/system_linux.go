package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// FindPortHolder returns the process that listens on a TCP port, and reports whether there is one. It cannot identify a
// process of another user.
func FindPortHolder(port uint16) (p Holder, taken bool) {
	listening := listeningSocketInodes(port)
	if len(listening) == 0 {
		return Holder{}, false
	}
	return findHolder(nil, func(open openFiles) bool {
		return slices.ContainsFunc(open.sockets, func(inode string) bool { return slices.Contains(listening, inode) })
	}), true
}

// FindFileHolder returns a process that has the file open, except this process and those with the excluded IDs.
func FindFileHolder(path string, but ...int) Holder {
	return findHolder(append(but, os.Getpid()), func(open openFiles) bool { return slices.Contains(open.files, path) })
}

// openFiles lists the files and sockets that a process has open.
type openFiles struct {
	sockets []string // inodes of the sockets
	files   []string
}

// findHolder returns the first matching process that is not excluded.
func findHolder(but []int, has func(openFiles) bool) Holder {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if slices.Contains(but, pid) {
			continue
		}
		if open := listOpenFiles(dir); has(open) {
			return newHolder(pid, dir, open)
		}
	}
	return Holder{}
}

func newHolder(pid int, dir string, open openFiles) Holder {
	name, _ := os.ReadFile(dir + "/comm")
	p := Holder{PID: pid, Name: toPrintable(string(name))}
	for _, f := range open.files {
		if filepath.Base(f) == LockFile {
			p.DataDir = filepath.Dir(f)
		}
	}
	return p
}

// ExecutableOf returns the path of a process's program, or "" if it is unknown. The path ends with " (deleted)" if the
// file was removed or replaced.
func ExecutableOf(pid int) string {
	file, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return file
}

// listeningSocketInodes returns the inodes of the sockets that listen on a port.
func listeningSocketInodes(port uint16) (inodes []string) {
	at, listens := fmt.Sprintf(":%04X", port), "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], at) && f[3] == listens {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes
}

// listOpenFiles returns the files and sockets that a process has open.
func listOpenFiles(process string) (o openFiles) {
	open, _ := os.ReadDir(process + "/fd")
	for _, f := range open {
		to, _ := os.Readlink(process + "/fd/" + f.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			o.sockets = append(o.sockets, strings.TrimSuffix(inode, "]"))
		} else if filepath.IsAbs(to) {
			o.files = append(o.files, to)
		}
	}
	return o
}

// toPrintable replaces control characters.
func toPrintable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s))
}

// mountPoint returns the mount point of a path.
func mountPoint(path string) string {
	table, _ := os.ReadFile("/proc/self/mounts")
	at := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 1 {
			at[f[1]] = true
		}
	}
	for !at[path] && path != "/" && path != "." {
		path = filepath.Dir(path)
	}
	return path
}
