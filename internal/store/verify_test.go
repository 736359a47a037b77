package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// verifyTampered changes the database of a log of 700 calls, and returns the result of Verify. Call n, starting at 0,
// is entry 2n+1, and its end is entry 2n+2.
func verifyTampered(t *testing.T, changes ...string) activity.Verification {
	t.Helper()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	defer closeLogAndDB(t, l, db)
	addCalls(t, l, 700)
	if v, err := l.Verify(t.Context()); err != nil || !v.OK || v.Records != 700 || v.Entries != 1400 {
		t.Fatalf("%+v, %v, %v", v, v.FirstBreak, err)
	}
	raw := openSQL(t, filepath.Join(dir, "mcpproxy.db"))
	for _, change := range changes {
		if result, err := raw.Exec(change); err != nil {
			t.Fatal(err)
		} else if n, err := result.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%s changed nothing, %v", change, err)
		}
	}
	v, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if last := l.Health().Verified; last == nil || last.OK != v.OK {
		t.Errorf("last verification = %+v", last)
	}
	return v
}

// TestVerifyNamesTheFirstBreak changes the database in many ways that are possible with an SQL shell.
func TestVerifyNamesTheFirstBreak(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const (
		of300  = " WHERE key = 300"
		change = "UPDATE activity SET entry = CAST(replace(CAST(entry AS TEXT), 'hello', 'jello') AS BLOB)" + of300
	)
	for name, tt := range map[string]struct {
		changes []string
		seq     int64
		says    string
	}{
		"a changed beginning": {[]string{change}, 601, "was changed"},
		"a changed end":       {[]string{"UPDATE activity SET outcome = CAST(replace(CAST(outcome AS TEXT), 'success', 'failure') AS BLOB)" + of300}, 602, "was changed"},
		"two changes":         {[]string{change, strings.Replace(change, "300", "200", 1)}, 401, "was changed"},
		"with its hash":       {[]string{change, "UPDATE activity SET hash = zeroblob(32)" + of300}, 601, "was changed"},
		"a hash":              {[]string{"UPDATE activity SET hash = zeroblob(32)" + of300}, 601, "was changed"},
		"a hash that is none": {[]string{"UPDATE activity SET end_hash = x'00'" + of300}, 602, "was changed"},
		"a removed record":    {[]string{"DELETE FROM activity" + of300}, 601, "from 601 to 602 are missing"},
		"a removed beginning": {[]string{"UPDATE activity SET entry = NULL, hash = NULL" + of300}, 601, "Entry 601 is missing"},
		"a removed text":      {[]string{"UPDATE activity SET entry = NULL" + of300}, 601, "was changed"},
		"a removed end":       {[]string{"UPDATE activity SET outcome = NULL, end_hash = NULL, end_seq = NULL" + of300}, 602, "Entry 602 is missing"},
		"an emptied end":      {[]string{"UPDATE activity SET outcome = NULL, end_hash = NULL" + of300}, 602, "was changed"},
		"a copied record": {[]string{"UPDATE activity_position SET next_key = 701",
			"INSERT INTO activity SELECT 700, seq, end_seq, hash, end_hash, entry, outcome FROM activity" + of300}, 601, "occurs a second time"},
		"an inserted record": {[]string{"INSERT INTO activity SELECT 700, 1401, 1402, hash, end_hash, entry, outcome FROM activity" + of300}, 1401, "is not the one that followed"},
		"two records in each other's place": {[]string{"UPDATE activity SET key = -1" + of300,
			"UPDATE activity SET key = 300 WHERE key = 400", "UPDATE activity SET key = 400 WHERE key = -1"}, 603, "at another position"},
		"two records with each other's text": {[]string{
			"UPDATE activity SET (entry, outcome, hash, end_hash) = (SELECT entry, outcome, hash, end_hash FROM activity AS other WHERE other.key = 700 - activity.key) WHERE key IN (300, 400)"},
			601, "is not the one that followed"},
		"the first records": {[]string{"DELETE FROM activity WHERE key < 5"}, 1, "from 1 to 10 are missing"},
		"the last records":  {[]string{"DELETE FROM activity WHERE key >= 690"}, 1381, "ends with entry 1380 instead of the last written entry 1400"},
		"the last records, told to the rest": {[]string{"UPDATE activity_position SET (seq, hash) = (SELECT end_seq, end_hash FROM activity WHERE key = 689)",
			"DELETE FROM activity WHERE key >= 690"}, 1381, "and the spool with entry 1400"},
		"everything": {[]string{"DELETE FROM activity"}, 1, "ends with entry 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verifyTampered(t, tt.changes...)
			if v.OK || v.FirstBreak == nil || v.FirstBreak.Seq != tt.seq || !strings.Contains(v.FirstBreak.Reason, tt.says) {
				t.Fatalf("%+v, %+v", v, v.FirstBreak)
			}
			if changed := strings.Contains(tt.says, "was changed") && name != "a removed text" && name != "an emptied end"; changed != (len(v.FirstBreak.ID) == 26) && changed {
				t.Errorf("the break does not name the record: %+v", v.FirstBreak)
			}
		})
	}
}

// TestVerifyReadsTheSpool changes the spool of an open log and of a closed log.
func TestVerifyReadsTheSpool(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	addCalls(t, l, 100)
	if v, err := l.Verify(t.Context()); err != nil || !v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "spool", "*.spool"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("got %d segments, %v", len(segments), err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(at int, b byte) {
		t.Helper()
		f, err := os.OpenFile(segments[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	at := strings.Index(string(data), `"seq":41,`) + 1
	put(at, 'S')
	v, err := l.Verify(t.Context())
	if err != nil || v.OK || v.FirstBreak.Seq != 41 || !strings.Contains(v.FirstBreak.Reason, "In the spool") {
		t.Errorf("%+v, %+v, %v", v, v.FirstBreak, err)
	}
	put(at, 's')
	if v, err := l.Verify(t.Context()); err != nil || !v.OK {
		t.Errorf("%+v, %+v, %v", v, v.FirstBreak, err)
	}
	closeLogAndDB(t, l, db)

	// The end of the spool is truncated, so that sequence numbers are used again.
	data = data[:strings.Index(string(data), `"seq":181,`)]
	if err := os.WriteFile(segments[0], data[:strings.LastIndexByte(string(data), '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	l, db = openLogAndDB(t, dir)
	addCalls(t, l, 5)
	v, err = l.Verify(t.Context())
	if err != nil || v.OK || v.FirstBreak.Seq != 181 || !strings.Contains(v.FirstBreak.Reason, "a second time") {
		t.Errorf("%+v, %+v, %v", v, v.FirstBreak, err)
	}
	closeLogAndDB(t, l, db)
}
