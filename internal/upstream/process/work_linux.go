package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of processor times in /proc.
const clockTick = 10 * time.Millisecond

// processInfo is what /proc tells of one process.
type processInfo struct {
	parent, group int
	used          time.Duration
	running       bool
}

// workOf is the processor time that a process, its group and all their
// descendants have used, and whether one of them computes or waits for a disk
// just now. ok reports whether that can be seen.
func workOf(leader int) (used time.Duration, running, ok bool) {
	all := processes()
	if all == nil {
		return 0, false, false
	}
	belongs := func(pid int) bool {
		for range 64 { // generations
			p, ok := all[pid]
			if pid == leader || ok && p.group == leader {
				return true
			}
			if !ok {
				return false
			}
			pid = p.parent
		}
		return false
	}
	for pid, p := range all {
		if belongs(pid) {
			used += p.used
			running = running || p.running
		}
	}
	return used, running, true
}

// processes are those of the machine that can be seen; nil when none can.
func processes() map[int]processInfo {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	all := make(map[int]processInfo, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		if p, ok := parseStat(stat); ok {
			all[pid] = p
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// parseStat reads a line of /proc/<pid>/stat, see proc_pid_stat(5). The name of
// the program in it may hold anything.
func parseStat(stat []byte) (p processInfo, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return processInfo{}, false
	}
	number := func(i int) int {
		n, err := strconv.Atoi(string(fields[i]))
		ok = ok && err == nil
		return n
	}
	ok = true
	p.parent, p.group = number(1), number(2)
	for i := 11; i <= 14; i++ { // its own, and of its children that have ended
		p.used += time.Duration(number(i)) * clockTick
	}
	state := string(fields[0])
	p.running = state == "R" || state == "D"
	return p, ok
}
