package session

import "sync"

// End is how something ends that a client can talk to, told once.
type End struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed
}

// NewEnd returns one that has not come.
func NewEnd() *End { return &End{done: make(chan struct{})} }

// Fail ends it for the reason err, unless it has ended.
func (l *End) Fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Done returns a channel that is closed when it has ended.
func (l *End) Done() <-chan struct{} { return l.done }

// Cause returns why it has ended, nil while it has not.
func (l *End) Cause() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}
