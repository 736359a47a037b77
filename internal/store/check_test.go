package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/volume"
)

// TestChecksOfAStoppedLog checks that the doctor finds damaged pages and changed records in the database and in the
// spool, without changing anything. Files of a killed process are not a fault.
func TestChecksOfAStoppedLog(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const of30 = " WHERE key = 30"
	for name, c := range map[string]struct {
		statement string
		spool     func(text string) string
		says      string
	}{
		"nothing":                     {},
		"a changed record":            {statement: "UPDATE activity SET entry = CAST(replace(CAST(entry AS TEXT), 'hello', 'jello') AS BLOB)" + of30, says: "Entry 61 was changed"},
		"a changed end":               {statement: "UPDATE activity SET outcome = CAST(replace(CAST(outcome AS TEXT), 'success', 'failure') AS BLOB)" + of30, says: "Entry 62 was changed"},
		"a removed record":            {statement: "DELETE FROM activity" + of30, says: "from 61 to 62 are missing"},
		"a changed line of the spool": {spool: func(s string) string { return strings.Replace(s, `"seq":41,`, `"seq":42,`, 1) }, says: "In the spool, entries after entry 40"},
		"a changed last line":         {spool: func(s string) string { i := strings.LastIndex(s, "success"); return s[:i] + "failure" + s[i+7:] }, says: "In the spool, entries after entry 199"},
		"a removed line of the spool": {spool: func(s string) string {
			i := strings.Index(s, `"seq":41,`)
			j := strings.LastIndex(s[:i], "\n")
			return s[:j] + s[j+1+strings.Index(s[j+1:], "\n"):]
		}, says: "In the spool, entries after entry 40"},
		"a torn last line of the spool":   {spool: func(s string) string { return s[:len(s)-20] }},
		"a spool that is gone":            {spool: func(string) string { return "" }},
		"a spool of which nothing fits":   {spool: func(s string) string { return strings.Replace(s, `"chain":"`, `"chain":"0`, 1) }, says: "In the spool, entries after entry 0"},
		"a changed header without a line": {spool: func(s string) string { return s[:40] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newClosedDatabase(t, 100)
			path, spool := filepath.Join(dir, "mcpproxy.db"), filepath.Join(dir, "spool")
			if c.statement != "" {
				if _, err := openSQL(t, path).Exec(c.statement); err != nil {
					t.Fatal(err)
				}
			}
			if c.spool != nil {
				files, err := filepath.Glob(filepath.Join(spool, "*.spool"))
				if err != nil || len(files) != 1 {
					t.Fatal(files, err)
				}
				text, err := os.ReadFile(files[0])
				if err = errors.Join(err, os.WriteFile(files[0], []byte(c.spool(strings.TrimRight(string(text), "\x00"))), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			first, err := store.CheckActivityLog(t.Context(), path, spool)
			if err != nil || (first == nil) != (c.says == "") || first != nil && !strings.Contains(first.Reason, c.says) {
				t.Errorf("CheckActivityLog gave %+v, %v", first, err)
			}
			if damage, err := store.CheckPages(t.Context(), path); damage != "" || err != nil {
				t.Errorf("CheckPages gave %s, %v", damage, err)
			}
		})
	}
}

// TestChecksOfADamagedPage overwrites each page of a database except for the first.
func TestChecksOfADamagedPage(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(newClosedDatabase(t, 100), "mcpproxy.db"))
	if err != nil {
		t.Fatal(err)
	}
	page := int(good[16])<<8 | int(good[17])
	if page == 1 {
		page = 1 << 16
	}
	found, all := 0, 0
	dir := t.TempDir()
	for at := page; at < len(good); at += page {
		path := filepath.Join(dir, "mcpproxy.db")
		bad := append([]byte{}, good...)
		for i := range page {
			bad[at+i] = 0x5a
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		damage, err := store.CheckPages(t.Context(), path)
		if err != nil {
			t.Error(err)
		}
		all++
		if damage != "" {
			found++
		}
		if after, _ := os.ReadFile(path); string(after) != string(bad) {
			t.Error("the file was changed")
		}
	}
	if all == 0 || found < all-freePages(t, good) {
		t.Errorf("found %d of %d damaged pages, %d pages are free", found, all, freePages(t, good))
	}
}

// freePages returns the number of free pages in a database. Nothing reads these pages.
func freePages(t *testing.T, file []byte) (n int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openSQL(t, path).QueryRow("PRAGMA freelist_count").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestChecksEndInTime checks that a check whose context is canceled returns the error of the context.
func TestChecksEndInTime(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := newClosedDatabase(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.CheckPages(ctx, filepath.Join(dir, "mcpproxy.db")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := store.CheckActivityLog(ctx, filepath.Join(dir, "mcpproxy.db"), filepath.Join(dir, "spool")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
