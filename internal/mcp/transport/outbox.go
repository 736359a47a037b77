package transport

import "sync"

// outbox is what is to be sent and nobody waits for, at most maxTold messages. It takes
// memory for those that wait alone: one that is empty is there for each server.
type outbox struct {
	some chan struct{} // cap 1: something waits

	mu      sync.Mutex // guards waiting
	waiting [][]byte
}

func newOutbox() *outbox { return &outbox{some: make(chan struct{}, 1)} }

// put adds a message. When too many wait it is dropped.
func (o *outbox) put(msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= maxTold {
		return
	}
	o.waiting = append(o.waiting, msg)
	select {
	case o.some <- struct{}{}:
	default:
	}
}

// take takes the message out that has waited longest; nil: none waits.
func (o *outbox) take() []byte {
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
