package transport

import "sync"

// outbox is a queue of up to maxOutbox background messages.
type outbox struct {
	some chan struct{} // capacity 1: the queue is not empty

	mu      sync.Mutex // guards waiting
	waiting [][]byte
}

func newOutbox() *outbox { return &outbox{some: make(chan struct{}, 1)} }

// putMessage adds a message, or drops it if the queue is full.
func (o *outbox) putMessage(msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= maxOutbox {
		return
	}
	o.waiting = append(o.waiting, msg)
	select {
	case o.some <- struct{}{}:
	default:
	}
}

// takeMessage removes and returns the oldest message, or nil if the queue is empty.
func (o *outbox) takeMessage() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.waiting = nil
		return nil
	}
	msg := o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	return msg
}
