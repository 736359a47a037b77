package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// holderOf finds the process that listens on a port, among those whose files this
// user may see, and if it is an MCPProxy its data directory.
func holderOf(port uint16) (pid int, process, dataDir string) {
	listening := listeners(port)
	if len(listening) == 0 {
		return 0, "", ""
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		open, dataDir := files(dir)
		if !slices.ContainsFunc(open, func(inode string) bool { return slices.Contains(listening, inode) }) {
			continue
		}
		name, _ := os.ReadFile(dir + "/comm")
		pid, _ = strconv.Atoi(filepath.Base(dir))
		return pid, printable(string(name)), dataDir
	}
	return 0, "", ""
}

// listeners are the inodes of the sockets that listen on a port.
func listeners(port uint16) (inodes []string) {
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

// files are the inodes of the sockets that a process has open, and the data
// directory whose lock it holds; empty when it is no MCPProxy.
func files(process string) (sockets []string, dataDir string) {
	open, _ := os.ReadDir(process + "/fd")
	for _, f := range open {
		to, _ := os.Readlink(process + "/fd/" + f.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			sockets = append(sockets, strings.TrimSuffix(inode, "]"))
		} else if filepath.Base(to) == lockName {
			dataDir = filepath.Dir(to)
		}
	}
	return sockets, dataDir
}
