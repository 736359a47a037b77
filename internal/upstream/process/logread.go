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

// maxTail is how much of a log is looked at for its last lines, and read at a time
// of what comes after them.
const maxTail = 1 << 20

// LogReader reads a server's log: its last lines, and then what is added. Between
// two reads it has no file open, so that the log can rotate everywhere. It is for
// one goroutine.
type LogReader struct {
	dir, server string
	file        os.FileInfo // that was read last; nil = none
	read        int64       // of it
}

// ReadLog returns a reader of a server's log in a directory. There need not be one
// yet; without a directory there never is.
func ReadLog(dir, server string) *LogReader { return &LogReader{dir: dir, server: server} }

// Last returns the last lines, at most as many as asked for and as 2 MiB hold. What
// Next returns comes after them.
func (r *LogReader) Last(lines int) (last []LogLine, err error) {
	err = r.within(func(root *os.Root) error {
		// The newer file first: when it becomes the older one meanwhile, it is not read twice.
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
		last = parseLines(newer)
		last = last[max(0, len(last)-max(0, lines)):]
		return nil
	})
	return last, err
}

// Next returns lines that were added since, a MiB at most; none when there are none
// now.
func (r *LogReader) Next() (lines []LogLine, err error) {
	err = r.within(func(root *os.Root) error {
		f, file, err := open(root, r.server+".log")
		if f == nil {
			return err
		}
		defer f.Close()
		if r.file != nil && !os.SameFile(r.file, file) {
			// It has rotated: what is left of the older one comes first.
			if lines, err = r.rest(root); err != nil || len(lines) > 0 {
				return err
			}
			r.read = 0
		}
		if r.file = file; file.Size() < r.read {
			r.read = 0 // somebody has emptied it
		}
		lines, err = r.more(f)
		return err
	})
	return lines, err
}

// rest reads on in the file that was read last, which is the older one by now; when
// it is not even that, it is gone.
func (r *LogReader) rest(root *os.Root) ([]LogLine, error) {
	f, file, err := open(root, r.server+".log.1")
	if f == nil {
		return nil, err
	}
	defer f.Close()
	if !os.SameFile(r.file, file) {
		return nil, nil
	}
	return r.more(f)
}

// more reads whole lines.
func (r *LogReader) more(f *os.File) ([]LogLine, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, r.read, maxTail))
	if end := bytes.LastIndexByte(b, '\n') + 1; end > 0 || len(b) < maxTail {
		b = b[:end]
	}
	r.read += int64(len(b))
	return parseLines(b), err
}

// within does something in the directory of the logs.
func (r *LogReader) within(do func(*os.Root) error) error {
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

// open opens a log to read it; nil when there is none.
func open(root *os.Root, name string) (*os.File, os.FileInfo, error) {
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

// tailFile reads the whole lines at the end of a file, and where they end.
func tailFile(root *os.Root, name string) (lines []byte, info os.FileInfo, end int64, err error) {
	f, info, err := open(root, name)
	if f == nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	start := max(0, info.Size()-maxTail)
	b, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	b = b[:bytes.LastIndexByte(b, '\n')+1] // it may just be written
	end = start + int64(len(b))
	if start > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, info, end, err
}

// parseLines reads lines of the file, which older versions kept as they came.
func parseLines(b []byte) []LogLine {
	var lines []LogLine
	for line := range strings.Lines(logText(string(b))) {
		lines = append(lines, parseLine(strings.TrimSuffix(line, "\n")))
	}
	return lines
}
