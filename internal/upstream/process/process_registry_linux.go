package process

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processRegistry records server processes in a directory, so that the next run can end
// those that a killed run left behind. It identifies them in two ways, never by name:
//   - A random mark in their environment, which all descendants inherit, also outside the
//     process group.
//   - A file with process id and start time, for members of the group that dropped the
//     mark.
//
// The mark is stored before the first process starts, so that a kill at any moment leaves
// no unknown process. A nil registry records nothing.
type processRegistry struct {
	dir  string
	text string // of the mark
}

// markVar is the variable with the mark.
const markVar = "MCPPROXY_PROCESS"

// newProcessRegistry returns the registry of a directory, nil if it cannot be stored
// there.
func newProcessRegistry(dir string) *processRegistry {
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	file, place := filepath.Join(dir, "mark"), directoryID(dir)
	old, _ := os.ReadFile(file)
	text, at, _ := strings.Cut(string(old), "\n")
	if len(text) < minMark || at != place { // none yet, or a copied directory
		_ = os.RemoveAll(dir)
		text = rand.Text()
		if os.MkdirAll(dir, 0o700) != nil || os.WriteFile(file, []byte(text+"\n"+directoryID(dir)), 0o600) != nil {
			return nil
		}
	}
	return &processRegistry{dir, text}
}

const minMark = 16

// directoryID distinguishes a directory from its copies: by path and inode.
func directoryID(dir string) string {
	path, err := filepath.Abs(dir)
	var stat unix.Stat_t
	if err != nil || unix.Stat(dir, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%s %d", path, stat.Ino)
}

// environMark returns the environment entry for each process, "" without one.
func (r *processRegistry) environMark() string {
	if r == nil {
		return ""
	}
	return markVar + "=" + r.text
}

func (r *processRegistry) recordPath(pid int) string { return filepath.Join(r.dir, strconv.Itoa(pid)) }

// add records a started process. If that fails, the mark is enough.
func (r *processRegistry) add(p *os.Process) {
	if r == nil {
		return
	}
	if who, ok := readProcessIdentity(p.Pid); ok {
		_ = os.WriteFile(r.recordPath(p.Pid), fmt.Appendf(nil, "%d %d %s", who.started, who.session, bootID()), 0o600)
	}
}

// remove removes a process whose group has ended.
func (r *processRegistry) remove(p *os.Process) {
	if r != nil {
		_ = os.Remove(r.recordPath(p.Pid))
	}
}

// leftoverGrace is the time between SIGTERM and SIGKILL for leftovers.
const leftoverGrace = 2 * time.Second

// endLeftovers ends the processes of earlier runs with SIGTERM, then SIGKILL, and returns
// their number. It is called before the first start.
func (r *processRegistry) endLeftovers() (count int) {
	if r == nil {
		return 0
	}
	groups := r.readRecordedProcesses()
	left := r.findLeftovers(groups)
	for _, one := range left {
		one.signal(unix.SIGTERM)
	}
	for limit := time.Now().Add(leftoverGrace); len(r.findLeftovers(groups)) > 0 && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	for range 10 { // the next round finds processes that fork during this one
		rest := r.findLeftovers(groups)
		if len(rest) == 0 {
			break
		}
		for _, one := range rest {
			one.signal(unix.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for pid := range groups {
		_ = os.Remove(r.recordPath(pid))
	}
	return len(left)
}

// readRecordedProcesses returns the recorded processes since the last boot.
func (r *processRegistry) readRecordedProcesses() map[int]processIdentity {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil
	}
	groups, boot := map[int]processIdentity{}, bootID()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 1 {
			continue
		}
		text, err := os.ReadFile(r.recordPath(pid))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) != 3 || fields[2] != boot {
			_ = os.Remove(r.recordPath(pid)) // of another boot, or incomplete
			continue
		}
		started, _ := strconv.ParseUint(fields[0], 10, 64)
		session, _ := strconv.Atoi(fields[1])
		groups[pid] = processIdentity{pid: pid, group: pid, session: session, started: started}
	}
	return groups
}

// processIdentity identifies a process by its id and start time, in ticks since boot.
type processIdentity struct {
	pid, group, session int
	started             uint64
}

// findLeftovers returns the running processes that are in one of these groups, or that have the mark.
func (r *processRegistry) findLeftovers(groups map[int]processIdentity) (all []processIdentity) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == os.Getpid() || pid <= 1 {
			continue
		}
		who, ok := readProcessIdentity(pid)
		if ok && (r.isMarked(pid) || belongsToGroup(who, groups)) {
			all = append(all, who)
		}
	}
	return all
}

func (r *processRegistry) isMarked(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+r.environMark()+"\x00"))
}

// belongsToGroup reports whether a process belongs to a recorded group. While a member of the group runs, the leader's
// id is not reused. A leader with another start time means another group.
func belongsToGroup(who processIdentity, groups map[int]processIdentity) bool {
	leader, ok := groups[who.group]
	if !ok || who.session != leader.session || who.started < leader.started {
		return false
	}
	now, lives := readProcessIdentity(leader.pid)
	return !lives || now.started == leader.started
}

// signal sends a signal to the process, unless its id was reused.
func (i processIdentity) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(i.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readProcessIdentity(i.pid); ok && now.started == i.started { // the descriptor is of the same process
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// readProcessIdentity reads a process's id from /proc, unless it has ended.
func readProcessIdentity(pid int) (who processIdentity, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processIdentity{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return processIdentity{}, false
	}
	who.pid = pid
	who.group, _ = strconv.Atoi(fields[2])
	who.session, _ = strconv.Atoi(fields[3])
	who.started, err = strconv.ParseUint(fields[19], 10, 64)
	return who, err == nil
}

// bootID identifies the boot of the machine, or the start of the container.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	space, _ := os.Readlink("/proc/self/ns/pid") // process ids are per namespace
	return strings.TrimSpace(string(text)) + space
}
