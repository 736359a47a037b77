package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of CPU times in /proc.
const clockTick = 10 * time.Millisecond

// processInfo is the /proc data of one process.
type processInfo struct {
	parent, group int
	cpuTime       time.Duration
	running       bool
}

// groupCPUTime returns the CPU time of a process, its group and all descendants, and
// whether one of them is computing or waiting for a disk. ok is false if that is unknown.
func groupCPUTime(leader int) (used time.Duration, running, ok bool) {
	all := listProcesses()
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
			used += p.cpuTime
			running = running || p.running
		}
	}
	return used, running, true
}

// listProcesses returns the visible processes; nil if /proc is not readable.
func listProcesses() map[int]processInfo {
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
			continue // it has ended since then
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

// parseStat parses a line of /proc/<pid>/stat, see proc_pid_stat(5). The program name in
// it may contain anything.
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
	for i := 11; i <= 14; i++ { // its own, and of its reaped children
		p.cpuTime += time.Duration(number(i)) * clockTick
	}
	state := string(fields[0])
	p.running = state == "R" || state == "D"
	return p, ok
}
