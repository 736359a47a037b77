package activity

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// pieceSize is the maximum number of bytes in one copy operation. A copy may store its bytes in any order, so killing
// the process during a copy may leave the end of a piece without its beginning. A piece is not longer than the hash at
// the beginning of a line, so it cannot contain a whole line. Therefore, an incomplete line never precedes the last
// whole line of the file.
const pieceSize = hexLen

// mappedFile is a spoolFile that is written through a memory mapping. Bytes copied into the mapping are in the page
// cache. There they survive the process like written bytes, but an entry needs no system call. The file grows by one
// window at a time. sizeWithoutZeros does not count the zeros after the last entry, and Close removes them.
type mappedFile struct {
	f        *os.File
	off      int64 // offset of the next byte
	base     int64 // offset of the window in the file
	reserved int64 // offset up to which disk blocks are reserved
	window   []byte
	fault    error // error that makes the file unusable; nothing more is written to it
}

// openMappedFile opens a segment for appending. If blocks cannot be reserved or the file cannot be mapped,
// it opens a plain file.
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

// Reserve reserves disk blocks. Without reserved blocks, a write to a hole could fail because the disk is full.
func (m *mappedFile) Reserve(size int64) (int64, error) {
	page := int64(os.Getpagesize())
	m.reserved = max(m.reserved, m.off/page*page)
	for m.reserved < size {
		n := max(windowSize, (size-m.reserved+page-1)/page*page)
		err := syscall.Fallocate(int(m.f.Fd()), 0, m.reserved, n)
		if errors.Is(err, syscall.ENOSPC) { // retry with the minimum
			n = (size - m.reserved + page - 1) / page * page
			err = syscall.Fallocate(int(m.f.Fd()), 0, m.reserved, n)
		}
		if err != nil {
			return 0, fmt.Errorf("reserve disk space for the activity log: %w", err)
		}
		m.reserved += n
	}
	return m.reserved, nil
}

// mapNextWindow maps the window that contains the next byte.
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

// Write appends p. If it fails, a part of p may be in the file.
func (m *mappedFile) Write(p []byte) (n int, err error) {
	// Some file systems run out of space despite a reservation, and another process may truncate the file. Such a fault
	// must return an error instead of ending the process.
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

// Truncate removes everything after size.
func (m *mappedFile) Truncate(size int64) error {
	err := errors.Join(m.fault, m.unmap(), m.f.Truncate(size))
	m.off, m.base, m.reserved = size, 0, 0
	return err
}

// Sync makes the written bytes survive a loss of power.
func (m *mappedFile) Sync() error { return m.f.Sync() }

// Stat returns the file information.
func (m *mappedFile) Stat() (os.FileInfo, error) { return m.f.Stat() }

// Close removes the reserved bytes that were not used, and closes the file.
func (m *mappedFile) Close() error {
	return errors.Join(m.unmap(), m.f.Truncate(m.off), m.f.Close())
}
