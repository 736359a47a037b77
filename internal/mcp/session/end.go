package session

import "sync"

// End is a one-time signal that a session or connection has ended, with its cause.
type End struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed
}

// NewEnd returns an End that is not signalled.
func NewEnd() *End { return &End{done: make(chan struct{})} }

// Fail signals the end with the cause err. Later calls do nothing.
func (l *End) Fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Done returns a channel that is closed at the end.
func (l *End) Done() <-chan struct{} { return l.done }

// Cause returns the cause of the end, or nil before it.
func (l *End) Cause() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}
