package classify

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
)

// The recorded verdicts of PostgreSQL's own parser: a line for each text, with the operation that the parser finds in
// it. The parser is C code that takes long to build, so it runs only in nightly tests. After a change of the texts,
// record its verdicts again:
//
//	go test -tags nightly -run TestRecordedVerdicts ./internal/gate/classify -update
const (
	verdictsFile  = "testdata/postgres-verdicts.txt"
	notPostgreSQL = "none" // the parser does not accept the text
)

// recordedTexts are the texts whose verdicts are recorded.
func recordedTexts(t *testing.T) []string {
	t.Helper()
	unique := map[string]bool{}
	for _, d := range disguised(t) {
		unique[d.text] = true
	}
	for text := range notRead {
		unique[text] = true
	}
	for text := range sqlCases {
		unique[text] = true
	}
	texts := make([]string, 0, len(unique))
	for text := range unique {
		texts = append(texts, text)
	}
	return texts
}

// TestPostgreSQLVerdicts checks that a text never gets a less dangerous lane than PostgreSQL's parser finds.
func TestPostgreSQLVerdicts(t *testing.T) {
	data, err := os.ReadFile(verdictsFile)
	if err != nil {
		t.Fatal(err)
	}
	operations := map[string]policy.Operation{}
	for _, o := range []policy.Operation{policy.Read, policy.Write, policy.Destructive} {
		operations[o.String()] = o
	}
	var recorded []string
	judged := 0
	for line := range strings.Lines(string(data)) {
		verdict, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		recorded = append(recorded, text)
		if verdict == notPostgreSQL {
			continue
		}
		judged++
		want, known := operations[verdict]
		if v := classifySQL(text); !known || v.Operation < want {
			t.Errorf("%q: %s (%s), PostgreSQL's parser finds %s", text, v.Operation, v.Word, verdict)
		}
	}
	if texts := slices.Sorted(slices.Values(recordedTexts(t))); !slices.Equal(recorded, texts) {
		t.Errorf("%d texts are recorded, %d are tested, or they differ: record them again", len(recorded), len(texts))
	}
	if judged < 200 {
		t.Errorf("PostgreSQL accepts only %d texts", judged)
	}
}
