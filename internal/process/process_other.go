//go:build !linux

package process

// plainLauncher starts a process on whatever thread it is called.
type plainLauncher struct{}

// NewLauncher returns what processes are started by.
func NewLauncher() Launcher { return plainLauncher{} }

func (plainLauncher) do(start func() error) error { return start() }

func (plainLauncher) Close() {}
