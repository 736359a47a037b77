package activity

// wakeSignal wakes a waiting goroutine. Raising it again before it is received has no effect.
type wakeSignal chan struct{}

func newWakeSignal() wakeSignal { return make(wakeSignal, 1) }

func (s wakeSignal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
