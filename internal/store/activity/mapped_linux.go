package activity

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// pieceSize is how much is copied at a time. One copy stores its bytes in any
// order, so a process that is killed in it may leave the end without the
// beginning. In a piece that is no larger than the hash that a line begins with
// no whole line has room, so that the last whole line of the file is never
// behind one that is not whole.
const pieceSize = hexLen

// mappedFile is a spoolFile that is written through memory. What is copied into
// the mapping is in the page cache, where it outlives the process as what is
// written outlives it, and no entry costs a system call. The file is extended
// window by window; what it has behind its last entry is zeros, which sizeWithoutZeros
// does not count and Close cuts off.
type mappedFile struct {
	f        *os.File
	off      int64 // where the next byte goes
	base     int64 // of the window in the file
	reserved int64 // how far blocks are reserved
	window   []byte
	fault    error // the file is not what it was: nothing more is written to it
}

// openMappedFile opens a segment to append to. Where blocks cannot be reserved or
// the file cannot be mapped, it is written in the plain way.
func openMappedFile(path string) (spoolFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m := &mappedFile{f: f, off: info.Size()}
	switch err := m.mapNextWindow(); {
	case err == nil:
		return m, nil
	case errors.Is(err, syscall.ENOSPC):
		return nil, errors.Join(err, m.Close())
	}
	if err := m.Close(); err != nil {
		return nil, err
	}
	return openPlainFile(path)
}

// Reserve reserves blocks: a hole would take them when it is written to, and
// there may be none.
func (m *mappedFile) Reserve(size int64) (int64, error) {
	page := int64(os.Getpagesize())
	m.reserved = max(m.reserved, m.off/page*page)
	for m.reserved < size {
		n := max(windowSize, (size-m.reserved+page-1)/page*page)
		err := syscall.Fallocate(int(m.f.Fd()), 0, m.reserved, n)
		if errors.Is(err, syscall.ENOSPC) { // as little as will do
			n = (size - m.reserved + page - 1) / page * page
			err = syscall.Fallocate(int(m.f.Fd()), 0, m.reserved, n)
		}
		if err != nil {
			return 0, fmt.Errorf("reserve room for the activity log: %w", err)
		}
		m.reserved += n
	}
	return m.reserved, nil
}

// mapNextWindow maps the window in which the next byte goes.
func (m *mappedFile) mapNextWindow() error {
	if err := m.unmap(); err != nil {
		return err
	}
	if _, err := m.Reserve(m.off + 1); err != nil {
		return err
	}
	page := int64(os.Getpagesize())
	base := m.off / page * page
	window, err := syscall.Mmap(int(m.f.Fd()), base, int(min(windowSize, m.reserved-base)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the activity log: %w", err)
	}
	m.base, m.window = base, window
	return nil
}

func (m *mappedFile) unmap() error {
	if m.window == nil {
		return nil
	}
	err := syscall.Munmap(m.window)
	m.window = nil
	return err
}

// Write appends p. When it fails, some of p may be in the file.
func (m *mappedFile) Write(p []byte) (n int, err error) {
	// Some file systems run out of room in spite of a reservation, and somebody
	// may cut the file short: that must be an error, not the end of the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			m.fault = fmt.Errorf("write the activity log: %v", fault)
			err = m.fault
		}
	}()
	for n < len(p) {
		if m.off >= m.base+int64(len(m.window)) {
			if err := m.mapNextWindow(); err != nil {
				return n, err
			}
		}
		k := copy(m.window[m.off-m.base:], p[n:min(n+pieceSize, len(p))])
		n += k
		m.off += int64(k)
	}
	return n, nil
}

// Truncate takes back what is behind size.
func (m *mappedFile) Truncate(size int64) error {
	err := errors.Join(m.fault, m.unmap(), m.f.Truncate(size))
	m.off, m.base, m.reserved = size, 0, 0
	return err
}

// Sync makes what was written survive the loss of power.
func (m *mappedFile) Sync() error { return m.f.Sync() }

// Stat describes the file.
func (m *mappedFile) Stat() (os.FileInfo, error) { return m.f.Stat() }

// Close cuts off what was reserved and not used.
func (m *mappedFile) Close() error {
	return errors.Join(m.unmap(), m.f.Truncate(m.off), m.f.Close())
}
