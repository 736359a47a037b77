package permission_test

import (
	"bytes"
	"fmt"
	"mcpproxy/internal/clients"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/problem"
)

// golden compares got with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v): got\n%s", path, err, got)
	}
}

// TestRecommend checks the printed rules of every client for every surface. The guide contains some of them.
func TestRecommend(t *testing.T) {
	e := account(t, &txtar.Archive{})
	for _, id := range clients.ClientIDs() {
		for surface, file := range map[clients.Surface]string{clients.SurfaceSearch: "", clients.SurfaceLanes: "-lanes", clients.SurfaceAll: "-all"} {
			r, err := permission.RecommendRules(e, id, ours(), surface)
			if err != nil || r.Surface != string(surface) {
				t.Fatal(r, err)
			}
			golden(t, "rules/"+id+file+".txt", strings.ReplaceAll(fmt.Sprintf("%s\n%s%s\n", r.Path, r.Text, r.ByHand), e.Home, "~"))
			c, err := clients.FindClient(id)
			if whole := c.SurfaceFacts().WholeServer.Text; err != nil || surface == clients.SurfaceLanes && (r.Path == "") != (strings.HasPrefix(whole, "no") || strings.HasPrefix(whole, "only the flag")) {
				t.Errorf("%s: the surface table has %q for a whole entry, but the rules are in %q", id, whole, r.Path)
			}
		}
	}
}

// TestWrite checks the shown difference and the client's resulting permissions, and undoes the change byte for byte.
// Each archive is a home directory before the change.
func TestWrite(t *testing.T) {
	archives, _ := filepath.Glob("testdata/write/*.txt")
	if len(archives) == 0 {
		t.Fatal("no archives")
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			e := account(t, a)
			client, _, _ := strings.Cut(string(a.Comment), ":")
			before := tree(t, e.Home)
			got := written(t, e, client)
			if after := tree(t, e.Home); after != before {
				t.Errorf("after undo\n%s\nbefore the change\n%s", after, before)
			}
			want := &a.Files[len(a.Files)-1]
			got = strings.ReplaceAll(got, filepath.Dir(e.Home)+"/", "")
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want.Data) {
				t.Errorf("got\n%s\nwant\n%s", got, want.Data)
			}
		})
	}
}

// written writes the rules, checks that writing them again changes nothing, and undoes the change.
func written(t *testing.T, e clients.Env, client string) string {
	t.Helper()
	j, err := clients.OpenJournal(filepath.Join(t.TempDir(), "client_changes"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := permission.PreparePlan(e, client, ours())
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	if !p.Changed {
		t.Fatal("the plan changes nothing")
	}
	done, err := p.Apply(j)
	if err != nil {
		t.Fatal(err)
	}
	if shown(done.After) != shown(p.After) {
		t.Errorf("predicted report\n%s\nactual report\n%s", shown(p.After), shown(done.After))
	}
	again, err := permission.PreparePlan(e, client, ours())
	if err != nil || again.Changed {
		t.Errorf("a second plan: error %v, changes:\n%s", err, again.Difference)
	}
	if _, err := permission.UndoLastChange(j, e, client); err != nil {
		t.Fatal(err)
	}
	if _, err := permission.UndoLastChange(j, e, client); problem.From(err).Code != problem.NotFound {
		t.Errorf("second undo: got %v, want NOT_FOUND", err)
	}
	return p.Path + "\n" + p.Difference + "\n" + strings.Join(append(p.Warnings, ""), "\n") + shown(done.After)
}

// tree returns every file below a directory, with its text.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %q\n", path, text)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return all.String()
}
