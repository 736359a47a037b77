package session

import "context"

// WithDoneChannels returns a context that also ends when a or b is closed. stop cancels it and waits for its
// goroutine.
func WithDoneChannels(ctx context.Context, a, b <-chan struct{}) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-a:
		case <-b:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, func() { cancel(); <-ended }
}
