package session

import "sync"

// EndSignal is a one-time signal that a session or connection has ended, with its cause.
type EndSignal struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed
}

// NewEndSignal returns an EndSignal that is not signalled.
func NewEndSignal() *EndSignal { return &EndSignal{done: make(chan struct{})} }

// Signal signals the end with the cause err. Later calls do nothing.
func (l *EndSignal) Signal(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Done returns a channel that is closed at the end.
func (l *EndSignal) Done() <-chan struct{} { return l.done }

// Cause returns the cause of the end, or nil before it.
func (l *EndSignal) Cause() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}
