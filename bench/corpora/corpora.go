// Package corpora reads the labeled definitions with which the scanner is trained and measured: the security corpora
// and, as benign definitions, the tools of real servers and of the retrieval sets. They are in a directory that the
// program receives as a flag, and are never copied into the project.
package corpora

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/catalog/tool"
)

// Sample is one labeled definition.
type Sample struct {
	ID, Corpus, Technique string
	Server                string     // "" if the corpus does not name it
	Peers                 []PeerTool // other tools that are installed with it
	Malicious             bool
	Definition            tool.Definition
}

// PeerTool is a tool of another server.
type PeerTool struct{ Server, Name string }

// FoldIndex returns the index of the sample's part, of n parts. Definitions of one server are in
// the same part.
func (s *Sample) FoldIndex(n uint32) uint32 {
	h := fnv.New32a()
	io.WriteString(h, cmp.Or(s.Server, s.ID))
	return h.Sum32() >> 7 % n
}

// ReadAll reads all samples below a directory, in the same order each time.
func ReadAll(shared string) ([]Sample, error) {
	var samples []Sample
	files, _ := filepath.Glob(filepath.Join(shared, "security-corpora", "*", "corpus.jsonl"))
	lists, _ := filepath.Glob(filepath.Join(shared, "real-servers", "*.tools.json"))
	if len(files) == 0 || len(lists) == 0 {
		return nil, errors.New("there are no corpora: say with --shared where they are")
	}
	for _, file := range append(files, filepath.Join(shared, "retrieval", "scale", "tools.jsonl.gz")) {
		more, err := ReadLines(file)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	for _, file := range lists {
		more, err := readToolList(file)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	return samples, nil
}

// corpusRow is a line of a corpus. The remaining members are the definition.
type corpusRow struct {
	ID, Label, Surface, Technique, Server string
	Peers                                 []PeerTool
}

// ReadLines reads a file with one definition per line.
func ReadLines(file string) ([]Sample, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	corpus := filepath.Base(filepath.Dir(file))
	var samples []Sample
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s, ok, err := parseLine(corpus, lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if ok {
			samples = append(samples, s)
		}
	}
	return samples, lines.Err()
}

func parseLine(corpus string, text []byte) (Sample, bool, error) {
	r := corpusRow{Label: "benign", Surface: "definition"}
	if err := json.Unmarshal(text, &r); err != nil {
		return Sample{}, false, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return Sample{}, false, err
	}
	if members["name"] == nil || r.Surface != "definition" {
		return Sample{}, false, nil
	}
	for _, label := range []string{"id", "label", "set", "surface", "technique", "server", "peers", "derived", "hard_negative", "resembles"} {
		delete(members, label)
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return Sample{}, false, err
	}
	s, ok := newSample(corpus, r, raw)
	return s, ok, nil
}

// readToolList reads the tools/list result of a real server. A variant of a server has the same server name.
func readToolList(file string) ([]Sample, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var answer struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	server, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".tools.json"), "-")
	var samples []Sample
	for k, raw := range answer.Tools {
		if s, ok := newSample("real-servers", corpusRow{ID: fmt.Sprintf("%s/%d", filepath.Base(file), k), Server: server}, raw); ok {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

func newSample(corpus string, r corpusRow, raw []byte) (Sample, bool) {
	d, err := tool.ParseDefinition("s", bytes.Clone(raw))
	return Sample{ID: r.ID, Corpus: corpus, Technique: cmp.Or(r.Technique, "-"), Server: r.Server, Peers: r.Peers, Malicious: r.Label == "malicious", Definition: d}, err == nil
}
