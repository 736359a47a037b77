//go:build !linux

package upstream

// plainLauncher starts a process on whatever thread it is called.
type plainLauncher struct{}

func newLauncher() launcher { return plainLauncher{} }

func (plainLauncher) do(start func() error) error { return start() }

func (plainLauncher) close() {}
