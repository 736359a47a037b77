package process

import (
	"errors"
	"os"
	"runtime"
	"sync"
)

// Launcher starts processes, every one from the same operating system thread,
// which lives until Close. Linux sends Pdeathsig when the thread that forked ends,
// not the process; Go ends a thread when a goroutine returns that is locked to
// it, and any library may have such a goroutine. A thread that is locked to
// our own goroutine is safe from that.
//
// With a directory it also knows the processes of an earlier run that was killed, and ends them
// before it starts any.
type Launcher struct {
	once   sync.Once
	roster *roster
	swept  chan struct{} // closed when the processes of an earlier run have ended
	tasks  chan func()
	quit   chan struct{}
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	live   map[*os.Process]bool
	killed bool
}

// NewLauncher returns what processes are started by. dir is where their numbers are kept, ""
// keeps none; nobody else uses it. told gets how many processes of an earlier run were ended.
func NewLauncher(dir string, told func(ended int)) *Launcher {
	l := &Launcher{roster: newRoster(dir), swept: make(chan struct{}), tasks: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.swept)
		if n := l.roster.endOld(); n > 0 {
			told(n)
		}
	}()
	return l
}

// Kill ends all processes at once, with what is in their groups, and lets none start
// after that.
func (l *Launcher) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = true
	for p := range l.live {
		killGroup(p)
	}
}

// started notes a process that Kill ends; one that comes after Kill ends now.
func (l *Launcher) started(p *os.Process) {
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

// ended forgets a process of which nothing is left.
func (l *Launcher) ended(p *os.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, p)
}

func (l *Launcher) do(start func() error) error {
	<-l.swept
	l.once.Do(func() { go l.run() })
	result := make(chan error, 1)
	select {
	case l.tasks <- func() { result <- start() }:
		return <-result
	case <-l.quit:
		return errClosed
	}
}

func (l *Launcher) run() {
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
func (l *Launcher) Close() {
	<-l.swept
	started := true
	l.once.Do(func() { started = false })
	close(l.quit)
	if started {
		<-l.done
	}
}

// errClosed is a start after the end of the launcher.
var errClosed = errors.New("the connection was ended by MCPProxy")
