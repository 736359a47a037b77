// Command effects measures how well the classifier infers hints from a tool's definition: against the declared hints of real
// servers, and for all tool names that describe a deletion.
//
//	go run ./bench/effects [-data dir] [-list tune|held|names] [-find regexp]
//
// A hash of the server's name splits the servers into two halves. The word lists were tuned on one half; the other half shows
// how well they generalize. The command prints figures and judges nothing; its test does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

func main() {
	data := flag.String("data", "../shared", "directory of the labelled data")
	list := flag.String("list", "", "list the disagreements of a half: tune or held")
	find := flag.String("find", "", "list what is inferred of the tools whose id matches")
	flag.Parse()
	if err := run(os.Stdout, *data, *list, *find); err != nil {
		fmt.Fprintln(os.Stderr, "effects:", err)
		os.Exit(1)
	}
}

// corpusFiles are the sets of definitions without hints, below the data directory.
func corpusFiles() []string {
	return []string{
		"security-corpora/benign-docker-registry/corpus.jsonl",
		"security-corpora/benign-livemcpbench/corpus.jsonl",
		"retrieval/scale/tools.jsonl.gz",
	}
}

func run(w io.Writer, data, list, find string) error {
	servers, err := readRealServers(data)
	if err != nil {
		return err
	}
	tuned := func(s declaredTool) bool { return !isHeldOut(s.definition.ID.Server) }
	unseen := func(s declaredTool) bool { return isHeldOut(s.definition.ID.Server) }
	switch list {
	case "tune":
		printDisagreements(w, servers, tuned)
		return nil
	case "held":
		printDisagreements(w, servers, unseen)
		return nil
	}
	sets := map[string][]declaredTool{"real-servers": servers}
	for _, path := range corpusFiles() {
		samples, err := readCorpus(filepath.Join(data, path))
		if err != nil {
			return err
		}
		sets[path] = samples
	}
	if find != "" {
		return printInferences(w, sets, find)
	}
	for _, half := range []struct {
		title string
		keep  func(declaredTool) bool
	}{
		{"real servers, the half that was looked at", tuned}, {"real servers, the other half", unseen},
		{"real servers, all", func(declaredTool) bool { return true }},
	} {
		newConfusionMatrix(servers, half.keep).print(w, half.title)
		reading, readers, changing, changers := countWarned(servers, half.keep)
		fmt.Fprintf(w, "  advise would warn of calls in the read lane for %d of %d that read, %d of %d that do not\n", reading, readers, changing, changers)
	}
	for _, set := range append([]string{"real-servers"}, corpusFiles()...) {
		like, read := deletionsInferredRead(sets[set])
		fmt.Fprintf(w, "%-52s %s\n  named like a deletion: %d, inferred read: %d %v\n", set, operationCountsText(sets[set]), like, len(read), read)
		code, parameters := toolsTakingCode(sets[set])
		declared, inferred := []string{}, []string{}
		for i, s := range code {
			if s.declared == saysRead {
				declared = append(declared, s.definition.ID.String())
			}
			if classify.InferHints(s.definition).Operation == policy.Read {
				inferred = append(inferred, s.definition.ID.String()+"("+parameters[i]+")")
			}
		}
		fmt.Fprintf(w, "  taking code: %d, declared read: %d %v, inferred read: %d %v\n", len(code), len(declared), declared, len(inferred), inferred)
	}
	return nil
}

func printInferences(w io.Writer, sets map[string][]declaredTool, find string) error {
	pattern, err := regexp.Compile(find)
	if err != nil {
		return err
	}
	for _, set := range append([]string{"real-servers"}, corpusFiles()...) {
		for _, s := range sets[set] {
			if in := classify.InferHints(s.definition); pattern.MatchString(s.definition.ID.String()) {
				fmt.Fprintf(w, "%-11s %s: %s\n", in.Operation, s.definition.ID, in.Reason)
			}
		}
	}
	return nil
}
