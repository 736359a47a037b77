package process

import (
	"errors"
	"os"
	"runtime"
	"sync"
)

// Launcher starts all processes from one operating system thread, which lives until
// Close. Linux sends Pdeathsig when the thread that forked ends, not the process, and Go
// ends a thread when a goroutine locked to it returns. So the launcher locks a thread to
// its own goroutine.
//
// With a directory it also records processes, and before its first start ends those that
// an earlier, killed run left behind.
type Launcher struct {
	once           sync.Once
	registry       *processRegistry
	leftoversEnded chan struct{} // closed when the processes of an earlier run have ended
	tasks          chan func()
	quit           chan struct{}
	done           chan struct{}

	mu     sync.Mutex // guards the fields below
	live   map[*os.Process]bool
	killed bool
}

// NewLauncher returns a launcher. dir stores process ids for the next run, "" for none;
// no other launcher may use it. told receives the number of ended processes of an earlier
// run.
func NewLauncher(dir string, told func(ended int)) *Launcher {
	l := &Launcher{registry: newProcessRegistry(dir), leftoversEnded: make(chan struct{}), tasks: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.leftoversEnded)
		if n := l.registry.endLeftovers(); n > 0 {
			told(n)
		}
	}()
	return l
}

// KillAll kills all processes with their groups, and rejects later starts.
func (l *Launcher) KillAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = true
	for p := range l.live {
		killGroup(p)
	}
}

// track registers a process for KillAll; after KillAll it is killed at once.
func (l *Launcher) track(p *os.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*os.Process]bool{}
	}
	l.live[p] = true
	if l.killed {
		killGroup(p)
	}
}

// untrack removes a process whose group is gone.
func (l *Launcher) untrack(p *os.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, p)
}

func (l *Launcher) runOnThread(start func() error) error {
	<-l.leftoversEnded
	l.once.Do(func() { go l.runTasks() })
	result := make(chan error, 1)
	select {
	case l.tasks <- func() { result <- start() }:
		return <-result
	case <-l.quit:
		return errClosed
	}
}

func (l *Launcher) runTasks() {
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

// Close ends the launcher's goroutine. Running processes are not affected: the thread
// returns to the runtime.
func (l *Launcher) Close() {
	<-l.leftoversEnded
	started := true
	l.once.Do(func() { started = false })
	close(l.quit)
	if started {
		<-l.done
	}
}

// errClosed rejects a start after Close.
var errClosed = errors.New("MCPProxy ended the connection")
