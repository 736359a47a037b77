package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/store/redact"
)

// chunkSize is the approximate size of the parts in which a clean text is scanned.
const chunkSize = 2 << 10

// printFlaggedCleanText prints the number of chunks of clean text in which a secret is found, and
// the scan speed.
func printFlaggedCleanText(w io.Writer, shared, further string, list bool) error {
	dirs := []string{
		filepath.Join(shared, "retrieval", "scale"), filepath.Join(shared, "real-servers"), filepath.Join(shared, "security-corpora", "benign-docker-registry"),
		filepath.Join(shared, "security-corpora", "benign-livemcpbench"),
	}
	if further != "" {
		dirs = append(dirs, strings.Split(further, ",")...)
	}
	for _, dir := range dirs {
		chunks, size, err := readChunks(dir)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "clean, %s: not here\n", dir)
			continue
		}
		if err != nil {
			return err
		}
		flagged := 0
		start := time.Now()
		for _, c := range chunks {
			if left := redact.Text(c); left != c {
				flagged++
				if list {
					fmt.Fprintf(w, "  flagged %s\n", maskedExcerpt(c, left))
				}
			}
		}
		took := time.Since(start).Seconds()
		fmt.Fprintf(w, "clean, %s: %d of %d chunks are flagged, %.2f %%; %.0f MB/s\n", dir, flagged, len(chunks), 100*float64(flagged)/float64(max(1, len(chunks))), float64(size)/1e6/took)
	}
	return nil
}

// maskedExcerpt returns the masked text with a little context before it.
func maskedExcerpt(before, after string) string {
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	return fmt.Sprintf("%q as %q", before[max(0, i-60):min(len(before), i+60)], after[i:min(len(after), i+40)])
}

// textExtensions are the extensions of the files to read.
var textExtensions = map[string]bool{".json": true, ".jsonl": true, ".gz": true, ".md": true, ".go": true, ".js": true, ".ts": true, ".py": true, ".txt": true, ".tsv": true,
	".c": true, ".h": true, ".sh": true, ".css": true, ".html": true, ".yml": true, ".yaml": true, ".toml": true, ".mjs": true, ".cjs": true}

// readChunks splits the texts below a directory at line breaks.
func readChunks(dir string) (chunks []string, size int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !textExtensions[filepath.Ext(path)] || strings.Contains(path, "test") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var in io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if in, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		var b strings.Builder
		flush := func() {
			if b.Len() > 0 {
				chunks, size = append(chunks, b.String()), size+b.Len()
				b.Reset()
			}
		}
		for r := bufio.NewReaderSize(in, 1<<16); ; {
			line, err := r.ReadString('\n')
			if utf8.ValidString(line) {
				b.WriteString(line)
			}
			if b.Len() >= chunkSize {
				flush()
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		flush()
		return nil
	})
	return chunks, size, err
}
