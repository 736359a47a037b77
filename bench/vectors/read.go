package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
)

// learned are the directories of training texts, judged those of the evaluation sets.
var (
	trainingFiles  = []string{"retrieval/scale/tools.jsonl.gz", "security-corpora/benign-docker-registry/corpus.jsonl"}
	evaluationSets = []string{"bfcl", "livemcp_agentq", "metatool", "ref065", "sealtools", "stabletoolbench"}
)

// publishedTool is a tool as the search reads it.
type publishedTool struct {
	name  string
	words []search.TrainingWord
}

// readTools reads every description once, without those in an evaluation set.
func readTools(dir string) (tools []publishedTool, err error) {
	seen := map[string]bool{}
	for _, set := range evaluationSets {
		err := eachDefinition(filepath.Join(dir, "retrieval", set, "tools.jsonl"), func(d *tool.Definition) {
			seen[strings.ToLower(d.Description)] = true
		})
		if err != nil {
			return nil, err
		}
	}
	ranking := search.DefaultRanking()
	for _, file := range trainingFiles {
		err := eachDefinition(filepath.Join(dir, file), func(d *tool.Definition) {
			if text := strings.ToLower(d.Description); !seen[text] {
				seen[text] = true
				tools = append(tools, publishedTool{strings.ToLower(d.ID.Tool), ranking.TrainingWords(d)})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return tools, nil
}

func eachDefinition(file string, each func(*tool.Definition)) error {
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
	for lines.Scan() {
		var t struct {
			Server, Name, Title, Description string
			InputSchema                      json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		each(&tool.Definition{
			ID: tool.ID{Server: t.Server, Tool: t.Name}, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		})
	}
	return lines.Err()
}
