package process

import (
	"runtime"
	"sync"
	"syscall"
)

// groupAttr puts a process into a group of its own, and has the kernel kill it
// when we die without stopping it, kill -9 included. A package manager is left
// alone: it comes to its end with what it installs, and what it has started is
// another process, which sees the end of its input.
func groupAttr(installs bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if installs {
		attr.Pdeathsig = 0
	}
	return attr
}

// threadLauncher starts every process from one operating system thread that
// lives until close. Linux sends Pdeathsig when the thread that forked ends,
// not the process; Go ends a thread when a goroutine returns that is locked to
// it, and any library may have such a goroutine. A thread that is locked to
// our own goroutine is safe from that.
type threadLauncher struct {
	once  sync.Once
	tasks chan func()
	quit  chan struct{}
	done  chan struct{}
}

// NewLauncher returns what processes are started by.
func NewLauncher() Launcher {
	return &threadLauncher{tasks: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
}

func (l *threadLauncher) do(start func() error) error {
	l.once.Do(func() { go l.run() })
	result := make(chan error, 1)
	select {
	case l.tasks <- func() { result <- start() }:
		return <-result
	case <-l.quit:
		return errClosed
	}
}

func (l *threadLauncher) run() {
	defer close(l.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case task := <-l.tasks:
			task()
		case <-l.quit:
			return
		}
	}
}

// Close ends the thread's work. Processes that still run lose nothing: the
// thread itself goes back to the runtime.
func (l *threadLauncher) Close() {
	started := true
	l.once.Do(func() { started = false })
	close(l.quit)
	if started {
		<-l.done
	}
}
