package session

import "context"

// Until returns a context that ends with a or b, too. stop ends it and what waits
// for that.
func Until(ctx context.Context, a, b <-chan struct{}) (_ context.Context, stop func()) {
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
