package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
)

// evaluationSet is a catalog of tools and the requests to search it with.
type evaluationSet struct {
	name    string
	tools   int
	catalog func() *catalog.Snapshot
	ids     map[tool.ID]string // as the labels call the tools
	queries []labelledQuery
	servers []string
	lists   map[string][]*tool.Definition
}

// labelledQuery is a request and the relevant tools.
type labelledQuery struct {
	ID       string             `json:"id"`
	Text     string             `json:"query"`
	Relevant []string           `json:"relevant"`
	Grades   map[string]float64 `json:"grades"`
}

// gain returns the gain of a tool: 1, or its grade if the query has grades.
func (q *labelledQuery) gain(id string) float64 {
	if q.Grades != nil {
		return q.Grades[id]
	}
	if slices.Contains(q.Relevant, id) {
		return 1
	}
	return 0
}

const queriesFile = "queries.jsonl"

// readSets reads every set in and below the folders.
func readSets(dirs []string) (sets []*evaluationSet, err error) {
	for _, root := range dirs {
		before := len(sets)
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Name() != queriesFile {
				return err
			}
			s, err := readSet(filepath.Dir(path))
			sets = append(sets, s)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(sets) == before {
			return nil, fmt.Errorf("there is no %s in or below %s: name a folder that has one beside tools.jsonl", queriesFile, root)
		}
	}
	return sets, nil
}

func readSet(dir string) (*evaluationSet, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &evaluationSet{name: filepath.Base(abs), ids: map[tool.ID]string{}}
	tools := filepath.Join(dir, "tools.jsonl")
	if _, err := os.Stat(tools); err != nil {
		tools += ".gz"
	}
	lists := map[string][]*tool.Definition{}
	err = eachLine(tools, func(line []byte) error {
		id, d, err := parseTool(line)
		if err != nil {
			return err
		}
		s.ids[d.ID] = id
		if lists[d.ID.Server] == nil {
			s.servers = append(s.servers, d.ID.Server)
		}
		lists[d.ID.Server] = append(lists[d.ID.Server], d)
		s.tools++
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(filepath.Join(dir, queriesFile), func(line []byte) error {
		var q labelledQuery
		err := json.Unmarshal(line, &q)
		s.queries = append(s.queries, q)
		return err
	})
	s.lists = lists
	s.catalog = sync.OnceValue(func() *catalog.Snapshot { return buildSnapshot(lists) })
	return s, err
}

func parseTool(line []byte) (string, *tool.Definition, error) {
	var t struct{ ID, Server, Name, Title, Description string }
	if err := json.Unmarshal(line, &t); err != nil {
		return "", nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return "", nil, err
	}
	schema := raw["inputSchema"]
	if string(schema) == "null" {
		schema = nil
	}
	return t.ID, &tool.Definition{
		ID: tool.ID{Server: t.Server, Tool: t.Name}, Title: t.Title,
		Description: t.Description, InputSchema: schema, Raw: line,
	}, nil
}

// buildSnapshot builds the catalog like the daemon: configured servers list their tools.
func buildSnapshot(lists map[string][]*tool.Definition) *catalog.Snapshot {
	var cfg config.Config
	for server := range lists {
		cfg.Servers = append(cfg.Servers, config.Server{Name: server, Enabled: true, Trust: config.TrustAuto})
	}
	book := approval.NewBook(discardingApprovalStore{}, nil)
	_ = book.Load(context.Background()) // never fails
	c := catalog.New(catalog.Options{Servers: cfg.Servers, Approvals: book, Logger: slog.New(slog.DiscardHandler)})
	for server, tools := range lists {
		c.ToolsListed(server, tools)
	}
	publish, _ := c.PrepareConfig(&cfg) // never refuses
	publish()
	return c.Current()
}

// discardingApprovalStore is an approval store that stores nothing.
type discardingApprovalStore struct{}

func (discardingApprovalStore) LoadApprovals(context.Context) (s approval.StoredDecisions, err error) {
	return s, nil
}
func (discardingApprovalStore) SaveApprovals(context.Context, approval.ChangeSet) error { return nil }
func (discardingApprovalStore) ReplaceApprovals(context.Context, approval.StoredDecisions) error {
	return nil
}
func (discardingApprovalStore) SaveHeld(context.Context, string, []approval.HeldDefinition) error {
	return nil
}
func (discardingApprovalStore) ApprovedDefinition(context.Context, tool.DefinitionKind, tool.ID) (json.RawMessage, error) {
	return nil, nil
}

func eachLine(file string, line func([]byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if filepath.Ext(file) == ".gz" {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if err := line(slices.Clone(lines.Bytes())); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return lines.Err()
}
