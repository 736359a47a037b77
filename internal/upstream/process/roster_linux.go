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

// roster knows the processes of servers beyond the life of this process, in a directory. After a
// kill -9 the next run ends what is left of them. It knows them in two ways, and never by name:
//   - Each gets a mark in its environment, a random text of this directory. What a server starts
//     inherits it, also outside of its process group.
//   - Each has a file with its number and start time. It finds those of its process group that
//     have dropped the mark.
//
// The mark is in the directory before the first process starts, so that a kill at any moment leaves
// nothing that is not known. A nil roster knows nothing.
type roster struct {
	dir  string
	text string // of the mark
}

// markVar is the variable that holds the mark.
const markVar = "MCPPROXY_PROCESS"

// newRoster returns the roster of a directory, nil when it cannot be kept there.
func newRoster(dir string) *roster {
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	file, place := filepath.Join(dir, "mark"), placeOf(dir)
	old, _ := os.ReadFile(file)
	text, at, _ := strings.Cut(string(old), "\n")
	if len(text) < minMark || at != place { // none yet, or the directory is a copy of another one
		_ = os.RemoveAll(dir)
		text = rand.Text()
		if os.MkdirAll(dir, 0o700) != nil || os.WriteFile(file, []byte(text+"\n"+placeOf(dir)), 0o600) != nil {
			return nil
		}
	}
	return &roster{dir, text}
}

const minMark = 16

// placeOf tells a directory from copies of it: by its path and its number on the disk.
func placeOf(dir string) string {
	path, err := filepath.Abs(dir)
	var stat unix.Stat_t
	if err != nil || unix.Stat(dir, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%s %d", path, stat.Ino)
}

// mark is what the environment of each process has in addition, "" when nothing.
func (r *roster) mark() string {
	if r == nil {
		return ""
	}
	return markVar + "=" + r.text
}

func (r *roster) file(pid int) string { return filepath.Join(r.dir, strconv.Itoa(pid)) }

// enter notes a process that has just been started. Without the note the mark has to do.
func (r *roster) enter(p *os.Process) {
	if r == nil {
		return
	}
	if who, ok := statOf(p.Pid); ok {
		_ = os.WriteFile(r.file(p.Pid), fmt.Appendf(nil, "%d %d %s", who.started, who.session, bootID()), 0o600)
	}
}

// leave forgets a process whose group has ended.
func (r *roster) leave(p *os.Process) {
	if r != nil {
		_ = os.Remove(r.file(p.Pid))
	}
}

// oldGrace is how long what an earlier run has left behind may take to end after SIGTERM.
const oldGrace = 2 * time.Second

// endOld ends what an earlier run has left behind: first with SIGTERM, then with SIGKILL. It returns
// how many processes there were. It is called before this run starts any.
func (r *roster) endOld() (count int) {
	if r == nil {
		return 0
	}
	groups := r.noted()
	left := r.left(groups)
	for _, one := range left {
		one.signal(unix.SIGTERM)
	}
	for limit := time.Now().Add(oldGrace); len(r.left(groups)) > 0 && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	for range 10 { // what forks meanwhile is found the next time
		rest := r.left(groups)
		if len(rest) == 0 {
			break
		}
		for _, one := range rest {
			one.signal(unix.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for pid := range groups {
		_ = os.Remove(r.file(pid))
	}
	return len(left)
}

// noted are the processes that earlier runs have noted since the machine was started.
func (r *roster) noted() map[int]identity {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil
	}
	groups, boot := map[int]identity{}, bootID()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 1 {
			continue
		}
		text, err := os.ReadFile(r.file(pid))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) != 3 || fields[2] != boot {
			_ = os.Remove(r.file(pid)) // of another boot, or not whole
			continue
		}
		started, _ := strconv.ParseUint(fields[0], 10, 64)
		session, _ := strconv.Atoi(fields[1])
		groups[pid] = identity{pid: pid, group: pid, session: session, started: started}
	}
	return groups
}

// identity is one process: its number and its start time, in ticks since the machine was started.
type identity struct {
	pid, group, session int
	started             uint64
}

// left are the processes of these groups, or with the mark, that still run.
func (r *roster) left(groups map[int]identity) (all []identity) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == os.Getpid() || pid <= 1 {
			continue
		}
		who, ok := statOf(pid)
		if ok && (r.isMarked(pid) || inGroup(who, groups)) {
			all = append(all, who)
		}
	}
	return all
}

func (r *roster) isMarked(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+r.mark()+"\x00"))
}

// inGroup reports whether a process belongs to a group that was noted. While a member of it lives
// the number of its leader is given to nobody else: a leader with another start time says that
// the group is another one.
func inGroup(who identity, groups map[int]identity) bool {
	leader, ok := groups[who.group]
	if !ok || who.session != leader.session || who.started < leader.started {
		return false
	}
	now, lives := statOf(leader.pid)
	return !lives || now.started == leader.started
}

// signal sends a signal to the process, unless its number has been given to another one.
func (i identity) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(i.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := statOf(i.pid); ok && now.started == i.started { // the descriptor is of this one
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// statOf reads who a process is, unless it has ended.
func statOf(pid int) (who identity, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return identity{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return identity{}, false
	}
	who.pid = pid
	who.group, _ = strconv.Atoi(fields[2])
	who.session, _ = strconv.Atoi(fields[3])
	who.started, err = strconv.ParseUint(fields[19], 10, 64)
	return who, err == nil
}

// bootID tells the time since the machine, or the container, was started from those before.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	space, _ := os.Readlink("/proc/self/ns/pid") // numbers are of one name space
	return strings.TrimSpace(string(text)) + space
}
