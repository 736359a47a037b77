package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is the program to start: a file or a name in PATH, and its arguments.
type Command struct {
	Name     string
	Args     []string
	Env      map[string]string // added to the allowed environment
	Dir      string
	Installs bool // a package manager, which is not killed in the middle
	// Modify changes the attributes of the process, and AfterExit runs when it has ended. Both may be nil.
	Modify    func(*syscall.SysProcAttr)
	AfterExit func()
}

// Process is a server's process with its three pipes. It is always reaped.
type Process struct {
	Stdin  *os.File
	Stdout *os.File

	cmd       *exec.Cmd
	registry  *processRegistry
	stderr    *os.File
	afterExit func()

	stderrBytes        atomic.Int64 // number of bytes written to stderr
	last               stderrTail   // of stderr
	letLeftoversFinish atomic.Bool  // its leftover processes may finish their work

	reaped chan struct{} // closed when the process has ended
	exited chan struct{} // closed when its leftovers are gone, too
	status error         // set before exited is closed
	wg     sync.WaitGroup
}

// Times for stopping.
const (
	stdinGrace    = 300 * time.Millisecond // after closing stdin
	TermGrace     = 2 * time.Second        // after SIGTERM
	BrokenGrace   = 500 * time.Millisecond // the same after a broken connection
	RollbackGrace = 90 * time.Second       // the same for a package manager that rolls back
	DrainTime     = 500 * time.Millisecond // to read the pipes of a dead process
)

// Start starts c without a shell in its own process group.
func Start(c Command, launch *Launcher) (*Process, error) {
	if c.AfterExit == nil {
		c.AfterExit = func() {}
	}
	p, err := start(c, launch)
	if err != nil {
		c.AfterExit()
	}
	return p, err
}

func start(c Command, launch *Launcher) (*Process, error) {
	cmd := exec.Command(c.Name, c.Args...)
	if path := findInPath(c.Name, c.Env["PATH"]); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir = c.Dir
	cmd.Env = Environment(c.Env)
	if mark := launch.registry.environMark(); mark != "" {
		cmd.Env = append(cmd.Env, mark)
	}
	cmd.SysProcAttr = newProcessGroupAttr(c.Installs)
	if c.Modify != nil {
		c.Modify(cmd.SysProcAttr)
	}
	p := &Process{cmd: cmd, registry: launch.registry, afterExit: c.AfterExit, reaped: make(chan struct{}), exited: make(chan struct{})}
	ours, theirs, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("make the pipes of the process: %w", err)
	}
	p.Stdin, p.Stdout, p.stderr = ours[0], ours[1], ours[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err = launch.runOnThread(cmd.Start)
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, &SpawnError{c.Name, missingDir(c.Dir), err}
	}
	p.registry.add(cmd.Process)
	launch.track(cmd.Process)
	p.wg.Add(1)
	go p.reapAndCleanUp(launch)
	return p, nil
}

// missingDir returns dir if it is set and not an accessible directory.
func missingDir(dir string) string {
	if info, err := os.Stat(dir); dir == "" || err == nil && info.IsDir() {
		return ""
	}
	return dir
}

// openPipes opens stdin, stdout and stderr: the parent's ends, and the child's.
func openPipes() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i])
			closeAll(theirs[:i])
			return ours, theirs, err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// reapAndCleanUp reaps the process and kills the rest of its group. The pipes get some time to be
// read and are then closed, because a process outside the group may keep them open for
// ever.
func (p *Process) reapAndCleanUp(launch *Launcher) {
	defer p.wg.Done()
	err := p.cmd.Wait()
	close(p.reaped)
	if p.letLeftoversFinish.Load() {
		p.waitForLeftovers()
	}
	killGroup(p.cmd.Process)
	p.registry.remove(p.cmd.Process)
	launch.untrack(p.cmd.Process)
	p.afterExit()
	p.status = &ExitError{p.cmd.ProcessState, err, &p.last}
	close(p.exited)
	deadline := time.Now().Add(DrainTime)
	for _, f := range []*os.File{p.Stdout, p.stderr} {
		if f.SetReadDeadline(deadline) != nil {
			f.Close()
		}
	}
}

// waitForLeftovers waits until the leftovers of a package manager are gone.
func (p *Process) waitForLeftovers() {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(RollbackGrace)
	defer limit.Stop()
	for groupExists(p.cmd.Process) {
		select {
		case <-look.C:
		case <-limit.C:
			return
		}
	}
}

// Stop ends the process group: end of input, SIGTERM, SIGKILL, each with a grace period
// that hard cuts short.
func (p *Process) Stop(hard <-chan struct{}, grace time.Duration, closeInput func()) {
	closeInput()
	if !p.WaitExit(hard, stdinGrace) {
		terminateGroup(p.cmd.Process)
		if !p.WaitExit(hard, grace) {
			killGroup(p.cmd.Process)
		}
	}
	p.wg.Wait()
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Go runs f in a goroutine that Stop waits for.
func (p *Process) Go(f func()) { p.wg.Go(f) }

// Exited returns a channel that is closed when the process has been reaped and its leftover group is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasEnded reports whether the process itself has ended, without its leftovers.
func (p *Process) HasEnded() bool {
	select {
	case <-p.reaped:
		return true
	default:
		return false
	}
}

// ExitStatus returns how the process ended, as an ExitError. It must have exited.
func (p *Process) ExitStatus() error { return p.status }

// StderrByteCount returns the number of bytes written to stderr.
func (p *Process) StderrByteCount() int64 { return p.stderrBytes.Load() }

// LetLeftoversFinish sets whether leftover processes may finish their work.
func (p *Process) LetLeftoversFinish(on bool) { p.letLeftoversFinish.Store(on) }

// CPUTime returns the CPU time of the process, its group and all descendants, and whether
// one of them is computing or waiting for a disk. ok is false if that is unknown.
func (p *Process) CPUTime() (used time.Duration, running, ok bool) { return groupCPUTime(p.PID()) }

// WaitExit waits at most d, or until hard ends, for the process to end, and reports
// whether it has.
func (p *Process) WaitExit(hard <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
	case <-hard:
	}
	return false
}

// floodPause is the pause between two reads of a flood, so that reading does not use all
// cores together with the server.
const floodPause = time.Millisecond

// CopyStderr copies stderr to the log until it ends.
func (p *Process) CopyStderr(log *Log) {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer p.stderr.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := p.stderr.Read(buf)
			log.Write(buf[:n])
			p.stderrBytes.Add(int64(n))
			p.last.addBytes(buf[:n])
			switch {
			case err != nil:
				return
			case log.rateExceeded():
				time.Sleep(floodPause)
			}
		}
	}()
}
