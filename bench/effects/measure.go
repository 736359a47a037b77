package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// declaredTool is a tool with the hints that its server declares.
type declaredTool struct {
	definition tool.Definition
	declared   declaredClass
}

// declaredClass returns the lane of the declared hints. readOnlyHint=false alone leaves open whether a tool is write or
// destructive.
type declaredClass string

const (
	unsaid     declaredClass = "not said"
	saysRead   declaredClass = "read"
	saysWrite  declaredClass = "write"
	saysDelete declaredClass = "destructive"
	saysChange declaredClass = "not read-only"
)

func toDeclaredClass(h tool.Hints) declaredClass {
	switch {
	case h.Destructive == tool.True:
		return saysDelete
	case h.ReadOnly == tool.True:
		return saysRead
	case h.ReadOnly == tool.False && h.Destructive == tool.False:
		return saysWrite
	case h.ReadOnly == tool.False || h.Destructive == tool.False:
		return saysChange
	}
	return unsaid
}

// readRealServers reads the tool lists of real servers, without variants of one server and without repeated tools.
func readRealServers(dir string) ([]declaredTool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "real-servers", "*.tools.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no lists of real servers in %s", dir)
	}
	slices.Sort(files)
	var samples []declaredTool
	seen := map[tool.Fingerprint]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		server := strings.TrimSuffix(filepath.Base(file), ".tools.json")
		for _, raw := range list.Tools {
			d, err := tool.ParseDefinition(server, raw)
			if err != nil {
				return nil, err
			}
			if print := d.Fingerprint(); !seen[print] {
				seen[print] = true
				samples = append(samples, declaredTool{d, toDeclaredClass(d.Hints)})
			}
		}
	}
	return samples, nil
}

// readCorpus reads a file with one definition per line.
func readCorpus(path string) ([]declaredTool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	var samples []declaredTool
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var row struct{ Server string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, err
		}
		if d, err := tool.ParseDefinition(row.Server, slices.Clone(lines.Bytes())); err == nil {
			samples = append(samples, declaredTool{d, toDeclaredClass(d.Hints)})
		}
	}
	return samples, lines.Err()
}

// isHeldOut reports whether a server belongs to the half that was not used for tuning.
func isHeldOut(server string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(server))
	return h.Sum32()%2 == 1
}

// confusionMatrix counts tools by inferred and declared hints.
type confusionMatrix map[declaredClass]map[policy.Operation]int

func newConfusionMatrix(samples []declaredTool, keep func(declaredTool) bool) confusionMatrix {
	m := confusionMatrix{}
	for _, s := range samples {
		if !keep(s) {
			continue
		}
		if m[s.declared] == nil {
			m[s.declared] = map[policy.Operation]int{}
		}
		m[s.declared][classify.InferHints(s.definition).Operation]++
	}
	return m
}

// countWarned counts the tools with declared hints for which a call in the read lane would cause a warning if they had
// no hints: separately for tools that are read-only and for tools that are not.
func countWarned(samples []declaredTool, keep func(declaredTool) bool) (reading, readers, changing, changers int) {
	for _, s := range samples {
		if s.declared == unsaid || !keep(s) {
			continue
		}
		warns := 0
		if in := classify.InferHints(s.definition); in.Operation > policy.Read && !in.Unsure {
			warns = 1
		}
		if s.declared == saysRead {
			reading, readers = reading+warns, readers+1
		} else {
			changing, changers = changing+warns, changers+1
		}
	}
	return reading, readers, changing, changers
}

// fraction returns a/b, or 0 if b is 0.
func fraction(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// precisionAndRecall returns the precision and the recall of the inferred lane op against the declared hints. A tool that
// only declares readOnlyHint=false counts neither as write nor as destructive, but as an error if inferred as read.
func (m confusionMatrix) precisionAndRecall(op policy.Operation) (precision, recall float64) {
	says := map[policy.Operation]declaredClass{policy.Read: saysRead, policy.Write: saysWrite, policy.Destructive: saysDelete}[op]
	right, inferred, declared := m[says][op], 0, 0
	for c, row := range m {
		if c != unsaid && (c != saysChange || op == policy.Read) {
			inferred += row[op]
		}
	}
	for _, n := range m[says] {
		declared += n
	}
	return fraction(right, inferred), fraction(right, declared)
}

func (m confusionMatrix) print(w io.Writer, title string) {
	fmt.Fprintf(w, "%s\n  %-14s %6s %6s %12s\n", title, "declared", "read", "write", "destructive")
	for _, c := range []declaredClass{saysRead, saysWrite, saysDelete, saysChange, unsaid} {
		fmt.Fprintf(w, "  %-14s %6d %6d %12d\n", c, m[c][policy.Read], m[c][policy.Write], m[c][policy.Destructive])
	}
	for _, op := range []policy.Operation{policy.Read, policy.Write, policy.Destructive} {
		p, r := m.precisionAndRecall(op)
		fmt.Fprintf(w, "  %-12s precision %.3f  recall %.3f\n", op, p, r)
	}
	p, r := m.notReadPrecisionAndRecall()
	fmt.Fprintf(w, "  %-12s precision %.3f  recall %.3f\n", "not read", p, r)
}

// notReadPrecisionAndRecall returns precision and recall of "not read-only": write and destructive together.
func (m confusionMatrix) notReadPrecisionAndRecall() (precision, recall float64) {
	right, missed := 0, 0
	for _, c := range []declaredClass{saysWrite, saysDelete, saysChange} {
		right += m[c][policy.Write] + m[c][policy.Destructive]
		missed += m[c][policy.Read]
	}
	return fraction(right, right+m[saysRead][policy.Write]+m[saysRead][policy.Destructive]), fraction(right, right+missed)
}

// deletionWord matches names that describe a deletion. It is deliberately independent of the
// classifier.
var deletionWord = regexp.MustCompile(`(?i)delet|remov|purg|destroy|destruct|wipe|truncat|kill|revok|uninstall|eras|terminat|unlink|prune|evict|expunge|obliterate|drop|nuke|shred|discard|(^|[^a-z])(del|rm|rmdir|clear|empty|flush|trash|reset|overwrite|unregister|deregister|cleanup|clean)([^a-z]|$)`)

// harmlessWord matches words that contain one of those by coincidence.
var harmlessWord = regexp.MustCompile(`(?i)s-?kills?([^a-z]|$)|skill|overkill|dropbox|dropdown|droplet|airdrop|raindrop|backdrop|shipping|swipe|cameras?|eras?([^a-z]|$)|(op|gen|fed|lib|consid|num)eras?|eraser`)

func isNamedLikeDeletion(name string) bool {
	return deletionWord.MatchString(harmlessWord.ReplaceAllString(name, " "))
}

// deletionsInferredRead returns the tools whose name describes a deletion and that are inferred as read.
func deletionsInferredRead(samples []declaredTool) (like int, read []string) {
	for _, s := range samples {
		if !isNamedLikeDeletion(s.definition.ID.Tool) {
			continue
		}
		like++
		if classify.InferHints(s.definition).Operation == policy.Read {
			read = append(read, s.definition.ID.String())
		}
	}
	return like, read
}

// codeParameterName and codeParameterDescription match parameters for a program, or for a query that can
// write, by their name and by their description. They are deliberately independent of the
// classifier.
var (
	codeParameterName        = regexp.MustCompile(`(?i)^(.*_)?(sql|cypher|sparql|graphql|gremlin|shell|bash|javascript|python|script|command|statement)([_-]?(query|code|text|statement|string))?$`)
	codeParameterDescription = regexp.MustCompile(`(?i)^\W*(\w+\W+){0,3}?(sql|cypher|sparql|graphql|gremlin|shell|bash|javascript|python|powershell)\s+(query|statement|command|code|script|function|expression)`)
	// notCodeItself matches the start of descriptions that only mention code: the name of a script, a time limit.
	notCodeItself = regexp.MustCompile(`(?i)\b(of|for|id|name|path|file|whether|how|which|maximum|number)\b`)
)

// toolsTakingCode returns the tools that accept code, with the name of the parameter.
func toolsTakingCode(samples []declaredTool) (tools []declaredTool, parameters []string) {
	for _, s := range samples {
		var schema struct {
			Properties map[string]struct {
				Type, Enum  json.RawMessage
				Description string
			}
		}
		if json.Unmarshal(s.definition.InputSchema, &schema) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			p := schema.Properties[name]
			told := codeParameterDescription.FindString(p.Description)
			if text := string(p.Type); p.Enum == nil && (text == "" || strings.Contains(text, "string")) &&
				(codeParameterName.MatchString(name) || told != "" && !notCodeItself.MatchString(told)) {
				tools, parameters = append(tools, s), append(parameters, name)
				break
			}
		}
	}
	return tools, parameters
}

// operationCountsText returns the number of tools per inferred operation.
func operationCountsText(samples []declaredTool) string {
	n := map[policy.Operation]int{}
	for _, s := range samples {
		n[classify.InferHints(s.definition).Operation]++
	}
	return fmt.Sprintf("%5d tools: %5d read, %5d write, %5d destructive", len(samples), n[policy.Read], n[policy.Write], n[policy.Destructive])
}

// printDisagreements prints the tools whose inferred and declared lanes differ.
func printDisagreements(w io.Writer, samples []declaredTool, keep func(declaredTool) bool) {
	type line struct {
		order string
		text  string
	}
	var lines []line
	for _, s := range samples {
		in := classify.InferHints(s.definition)
		if !keep(s) || s.declared == unsaid || string(s.declared) == in.Operation.String() {
			continue
		}
		order := string(s.declared) + in.Operation.String()
		lines = append(lines, line{order, fmt.Sprintf("%-13s %-11s %s: %s", s.declared, in.Operation, s.definition.ID, in.Reason)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.order, b.order) })
	for _, l := range lines {
		fmt.Fprintln(w, l.text)
	}
}
