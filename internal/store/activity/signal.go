package activity

// wakeSignal wakes a goroutine that waits for it. Raised again before it was seen, it
// is one.
type wakeSignal chan struct{}

func newWakeSignal() wakeSignal { return make(wakeSignal, 1) }

func (s wakeSignal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
