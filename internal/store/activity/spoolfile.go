package activity

import (
	"errors"
	"fmt"
	"math"
	"os"
)

// windowSize is the number of bytes of a segment that are reserved and mapped at a time.
const windowSize = 1 << 20

// spoolFile is a file of the spool that is open for writing.
type spoolFile interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
	Stat() (os.FileInfo, error)
	// Reserve guarantees that the file can grow to size, even if the disk becomes full. It returns the guaranteed size,
	// or math.MaxInt64 if that is unknown.
	Reserve(size int64) (upTo int64, err error)
}

// openPlainFile opens a segment for appending with write(2).
func openPlainFile(path string) (spoolFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &plainFile{File: f}, nil
}

// plainFile is a spoolFile that is written with write(2).
type plainFile struct {
	*os.File
	reserved int64
}

// Reserve reserves disk blocks if the system supports it.
func (f *plainFile) Reserve(size int64) (int64, error) {
	if f.reserved >= size {
		return f.reserved, nil
	}
	size = (size + windowSize - 1) / windowSize * windowSize
	known, err := reserveDiskBlocks(f.File, size)
	if err != nil {
		return 0, fmt.Errorf("reserve disk space for the activity log: %w", err)
	}
	if !known {
		size = math.MaxInt64
	}
	f.reserved = size
	return size, nil
}

// Truncate removes everything after size, including reserved bytes.
func (f *plainFile) Truncate(size int64) error {
	f.reserved = 0
	return f.File.Truncate(size)
}

// Close releases the reserved bytes that were not used.
func (f *plainFile) Close() error {
	info, err := f.Stat()
	if err == nil && f.reserved > info.Size() {
		err = f.File.Truncate(info.Size())
	}
	return errors.Join(err, f.File.Close())
}
