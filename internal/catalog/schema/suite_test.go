package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestSuite runs the official JSON-Schema-Test-Suite from the copy in the directory JSON_SCHEMA_TEST_SUITE. Only tests
// that refer to other documents may fail, because nothing is fetched.
func TestSuite(t *testing.T) {
	dir := os.Getenv("JSON_SCHEMA_TEST_SUITE")
	if dir == "" {
		t.Skip("JSON_SCHEMA_TEST_SUITE does not name a copy of the suite")
	}
	for draft, dialect := range map[string]string{
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
		"draft2019-09": "https://json-schema.org/draft/2019-09/schema",
		"draft7":       "http://json-schema.org/draft-07/schema#",
		"draft6":       "http://json-schema.org/draft-06/schema#",
		"draft4":       "http://json-schema.org/draft-04/schema#",
	} {
		t.Run(draft, func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join(dir, "tests", draft, "*.json"))
			total, right := 0, 0
			for _, file := range files {
				a, b := suiteFile(t, file, dialect)
				total, right = total+a, right+b
			}
			t.Logf("%d of %d passed", right, total)
			if total == 0 || float64(right) < 0.975*float64(total) {
				t.Errorf("%d of %d passed, want 97.5 %%", right, total)
			}
		})
	}
}

func suiteFile(t *testing.T, file, dialect string) (total, right int) {
	var groups []struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &groups)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		s := Compile(inDialect(g.Schema, dialect))
		for _, tt := range g.Tests {
			total++
			v, err := s.CheckArguments(tt.Data)
			if err == nil {
				checkSome(t, s, tt.Data)
			}
			switch {
			case (len(v) == 0 && err == nil) == tt.Valid:
				right++
			case s.BrokenError() == nil:
				t.Errorf("%s: %s: %s: %v %v, want valid = %v", filepath.Base(file), g.Description, tt.Description, v, err, tt.Valid)
			}
		}
	}
	return total, right
}

// inDialect adds $schema to a schema that does not declare its dialect. The suite has a folder per dialect instead.
func inDialect(schema json.RawMessage, dialect string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members["$schema"] != nil {
		return schema
	}
	members["$schema"], _ = json.Marshal(dialect)
	out, _ := json.Marshal(members)
	return out
}
