package activity

// signal wakes a goroutine that waits for it. Raised again before it was seen, it
// is one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
