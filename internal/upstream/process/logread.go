package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// maxTail bounds what is read of the end of a log, and of new lines at a time.
const maxTail = 1 << 20

// LogReader reads the last lines of a server's log, and then new ones. It keeps no file
// open between reads, so that the log can rotate on any system. It is not safe for
// concurrent use.
type LogReader struct {
	dir, server string
	file        os.FileInfo // the file of the last read; nil = none
	read        int64       // offset in it
}

// NewLogReader returns a reader of a server's log in a directory. The log need not exist.
func NewLogReader(dir, server string) *LogReader { return &LogReader{dir: dir, server: server} }

// ReadLast returns up to that many last lines, from at most 2 MiB. ReadNew continues after them.
func (r *LogReader) ReadLast(lines int) (last []LogLine, err error) {
	err = r.withLogDir(func(root *os.Root) error {
		// The newer file first: if the log rotates between the two reads, no line is read twice.
		newer, file, end, err := tailFile(root, r.server+".log")
		if err != nil {
			return err
		}
		older, before, _, err := tailFile(root, r.server+".log.1")
		if err != nil {
			return err
		}
		if file == nil || before == nil || !os.SameFile(file, before) {
			newer = slices.Concat(older, newer)
		}
		r.file, r.read = file, end
		last = parseLogLines(newer)
		last = last[max(0, len(last)-max(0, lines)):]
		return nil
	})
	return last, err
}

// ReadNew returns new lines, at most 1 MiB; none if there are none.
func (r *LogReader) ReadNew() (lines []LogLine, err error) {
	err = r.withLogDir(func(root *os.Root) error {
		f, file, err := openLog(root, r.server+".log")
		if f == nil {
			return err
		}
		defer f.Close()
		if r.file != nil && !os.SameFile(r.file, file) {
			// The log has rotated: first the rest of the older file.
			if lines, err = r.readRotatedRest(root); err != nil || len(lines) > 0 {
				return err
			}
			r.read = 0
		}
		if r.file = file; file.Size() < r.read {
			r.read = 0 // truncated
		}
		lines, err = r.readLines(f)
		return err
	})
	return lines, err
}

// readRotatedRest reads the rest of the last file, which is now the older one or gone.
func (r *LogReader) readRotatedRest(root *os.Root) ([]LogLine, error) {
	f, file, err := openLog(root, r.server+".log.1")
	if f == nil {
		return nil, err
	}
	defer f.Close()
	if !os.SameFile(r.file, file) {
		return nil, nil
	}
	return r.readLines(f)
}

// readLines reads whole lines.
func (r *LogReader) readLines(f *os.File) ([]LogLine, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, r.read, maxTail))
	if end := bytes.LastIndexByte(b, '\n') + 1; end > 0 || len(b) < maxTail {
		b = b[:end]
	}
	r.read += int64(len(b))
	return parseLogLines(b), err
}

// withLogDir runs do with the log directory.
func (r *LogReader) withLogDir(do func(*os.Root) error) error {
	if r.dir == "" {
		return nil
	}
	root, err := os.OpenRoot(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the directory of the logs: %w", err)
	}
	defer root.Close()
	if err := do(root); err != nil {
		return fmt.Errorf("read the log of %s: %w", r.server, err)
	}
	return nil
}

// openLog opens a log for reading; nil without one.
func openLog(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// tailFile reads the whole lines at the end of a file, and returns their end offset.
func tailFile(root *os.Root, name string) (lines []byte, info os.FileInfo, end int64, err error) {
	f, info, err := openLog(root, name)
	if f == nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	start := max(0, info.Size()-maxTail)
	b, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	b = b[:bytes.LastIndexByte(b, '\n')+1] // the rest may be written right now
	end = start + int64(len(b))
	if start > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, info, end, err
}

// parseLogLines parses lines, including those without a prefix from older versions.
func parseLogLines(b []byte) []LogLine {
	var lines []LogLine
	for line := range strings.Lines(maskAndEscape(string(b))) {
		lines = append(lines, parseLogLine(strings.TrimSuffix(line, "\n")))
	}
	return lines
}
