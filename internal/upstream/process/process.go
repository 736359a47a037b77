package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Command is what is started: a file or a name in PATH, and its arguments.
type Command struct {
	Name     string
	Args     []string
	Env      map[string]string // added to the allow-listed environment
	Dir      string
	Installs bool // it installs something, and is not to be killed in the middle
}

// Process is a server's process with its three pipes. Between Start and Stop
// it is always waited for, so that it never stays a zombie.
type Process struct {
	Stdin  *os.File
	Stdout *os.File

	cmd    *exec.Cmd
	roster *roster
	stderr *os.File

	said    atomic.Int64 // bytes that it has written to stderr
	last    lastLines    // of stderr
	careful atomic.Bool  // what it leaves behind is not killed in the middle of its work

	reaped chan struct{} // closed when it has ended by itself or by us
	exited chan struct{} // closed when what it has left behind is gone, too
	status error         // why, before exited is closed
	wg     sync.WaitGroup
}

// The times of stopping.
const (
	stdinGrace    = 300 * time.Millisecond // after closing stdin
	TermGrace     = 2 * time.Second        // after SIGTERM
	BrokenGrace   = 500 * time.Millisecond // the same for one that has broken the connection
	RollbackGrace = 90 * time.Second       // the same for one that takes back what it has installed
	DrainTime     = 500 * time.Millisecond // for what is left in the pipes of a dead process
)

// Start starts c: as it is, without a shell, in a process group of its
// own.
func Start(c Command, launch *Launcher) (*Process, error) {
	cmd := exec.Command(c.Name, c.Args...)
	if path := lookIn(c.Name, c.Env["PATH"]); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir = c.Dir
	cmd.Env = environment(os.Environ(), c.Env, runtime.GOOS)
	if mark := launch.roster.mark(); mark != "" {
		cmd.Env = append(cmd.Env, mark)
	}
	cmd.SysProcAttr = groupAttr(c.Installs)
	p := &Process{cmd: cmd, roster: launch.roster, reaped: make(chan struct{}), exited: make(chan struct{})}
	ours, theirs, err := pipes()
	if err != nil {
		return nil, fmt.Errorf("make the pipes of the process: %w", err)
	}
	p.Stdin, p.Stdout, p.stderr = ours[0], ours[1], ours[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err = launch.do(cmd.Start)
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, &SpawnError{c.Name, missingDir(c.Dir), err}
	}
	p.roster.enter(cmd.Process)
	launch.started(cmd.Process)
	p.wg.Add(1)
	go p.wait(launch)
	return p, nil
}

// missingDir is dir, when it is named and no directory that can be entered.
func missingDir(dir string) string {
	if info, err := os.Stat(dir); dir == "" || err == nil && info.IsDir() {
		return ""
	}
	return dir
}

// pipes makes stdin, stdout and stderr: our ends, and those of the process.
func pipes() (ours, theirs [3]*os.File, err error) {
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

// wait reaps the process and ends what it has left behind in its group. What
// is in the pipes gets a moment to be read; then they are closed, since a
// process that left the group may hold them open for ever.
func (p *Process) wait(launch *Launcher) {
	defer p.wg.Done()
	err := p.cmd.Wait()
	close(p.reaped)
	if p.careful.Load() {
		p.awaitGroup()
	}
	killGroup(p.cmd.Process)
	p.roster.leave(p.cmd.Process)
	launch.ended(p.cmd.Process)
	p.status = &ExitError{p.cmd.ProcessState, err, &p.last}
	close(p.exited)
	deadline := time.Now().Add(DrainTime)
	for _, f := range []*os.File{p.Stdout, p.stderr} {
		if f.SetReadDeadline(deadline) != nil {
			f.Close()
		}
	}
}

// awaitGroup waits until what an installing process has left behind is gone.
func (p *Process) awaitGroup() {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(RollbackGrace)
	defer limit.Stop()
	for groupLives(p.cmd.Process) {
		select {
		case <-look.C:
		case <-limit.C:
			return
		}
	}
}

// Stop ends the process: end of input, SIGTERM, SIGKILL, each to the whole
// group and with time to comply, which hard cuts short.
func (p *Process) Stop(hard <-chan struct{}, grace time.Duration, closeInput func()) {
	closeInput()
	if !p.Gone(hard, stdinGrace) {
		termGroup(p.cmd.Process)
		if !p.Gone(hard, grace) {
			killGroup(p.cmd.Process)
		}
	}
	p.wg.Wait()
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Go runs f in a goroutine, whose end Stop waits for.
func (p *Process) Go(f func()) { p.wg.Go(f) }

// Exited returns a channel that is closed when the process has been reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasEnded reports whether the process itself has ended, whatever it has left behind.
func (p *Process) HasEnded() bool {
	select {
	case <-p.reaped:
		return true
	default:
		return false
	}
}

// Status returns how the process ended, as an ExitError. It must have exited.
func (p *Process) Status() error { return p.status }

// Said returns how many bytes it has written to stderr.
func (p *Process) Said() int64 { return p.said.Load() }

// Spare sets whether what the process leaves behind is left to end its work.
func (p *Process) Spare(on bool) { p.careful.Store(on) }

// Work returns the processor time that the process, its group and all their
// descendants have used, and whether one of them computes or waits for a disk
// just now. ok reports whether that can be seen.
func (p *Process) Work() (used time.Duration, running, ok bool) { return workOf(p.PID()) }

// Gone waits at most d, or until hard ends, for the process to end, and reports
// whether it has.
func (p *Process) Gone(hard <-chan struct{}, d time.Duration) bool {
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

// floodPause is between two reads of a flood. Who reads as fast as it is written
// needs all processors together with the server.
const floodPause = time.Millisecond

// KeepStderr copies stderr to the log until it ends.
func (p *Process) KeepStderr(log *Log) {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer p.stderr.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := p.stderr.Read(buf)
			log.Write(buf[:n])
			p.said.Add(int64(n))
			p.last.add(buf[:n])
			switch {
			case err != nil:
				return
			case log.full():
				time.Sleep(floodPause)
			}
		}
	}()
}
