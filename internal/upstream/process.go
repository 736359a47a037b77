package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// process is a server's process with its three pipes. Between start and stop
// it is always waited for, so that it never stays a zombie.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File

	exited chan struct{} // closed when the process has been reaped
	status error         // why, before exited is closed
	wg     sync.WaitGroup
}

// The times of stopping: after closing stdin, and after SIGTERM.
const (
	stdinGrace  = 300 * time.Millisecond
	termGrace   = 2 * time.Second
	brokenGrace = 500 * time.Millisecond
	drainTime   = 500 * time.Millisecond // for what is left in the pipes of a dead process
)

// startProcess starts the command of spec: as it is, without a shell, in a
// process group of its own.
func startProcess(spec *Spec, launch launcher) (*process, error) {
	cmd := exec.Command(spec.Command, spec.Args...)
	if path := lookIn(spec.Command, spec.Env["PATH"]); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir = spec.Dir
	cmd.Env = environment(os.Environ(), spec.Env, runtime.GOOS)
	cmd.SysProcAttr = groupAttr()
	p := &process{cmd: cmd, exited: make(chan struct{})}
	ours, theirs, err := pipes()
	if err != nil {
		return nil, fmt.Errorf("make the pipes of the process: %w", err)
	}
	p.stdin, p.stdout, p.stderr = ours[0], ours[1], ours[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err = launch.do(cmd.Start)
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, fmt.Errorf("start the process: %w", err)
	}
	p.wg.Add(1)
	go p.wait()
	return p, nil
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
func (p *process) wait() {
	defer p.wg.Done()
	err := p.cmd.Wait()
	killGroup(p.cmd.Process)
	if err == nil {
		err = fmt.Errorf("the process ended with status 0")
	} else {
		err = fmt.Errorf("the process ended: %w", err)
	}
	p.status = err
	close(p.exited)
	deadline := time.Now().Add(drainTime)
	for _, f := range []*os.File{p.stdout, p.stderr} {
		if f.SetReadDeadline(deadline) != nil {
			f.Close()
		}
	}
}

// stop ends the process: end of input, SIGTERM, SIGKILL, each to the whole
// group and with time to comply, which hard cuts short.
func (p *process) stop(hard <-chan struct{}, grace time.Duration, closeInput func()) {
	closeInput()
	if !p.gone(hard, stdinGrace) {
		termGroup(p.cmd.Process)
		if !p.gone(hard, grace) {
			killGroup(p.cmd.Process)
		}
	}
	p.wg.Wait()
}

// gone waits at most d, or until hard ends, for the process to end.
func (p *process) gone(hard <-chan struct{}, d time.Duration) bool {
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

// keepStderr copies stderr to the log until it ends.
func (p *process) keepStderr(log *serverLog) {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer p.stderr.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := p.stderr.Read(buf)
			log.Write(buf[:n])
			switch {
			case err != nil:
				return
			case log.full():
				time.Sleep(floodPause)
			}
		}
	}()
}

// launcher starts processes.
type launcher interface {
	do(start func() error) error
	close()
}
