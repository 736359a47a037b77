package approval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/testutil/approvaltest"
	"mcpproxy/internal/testutil/volume"
)

const by = "admin"

// home is a book with a store in memory and the denylist file.
type home struct {
	t     *testing.T
	store *approvaltest.MemoryStore
	path  string
	notes []string
	keep  *approval.Denylist
	*approval.Book
}

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{t: t, store: &approvaltest.MemoryStore{}, path: filepath.Join(t.TempDir(), "restrictions.log")}
	h.restart()
	t.Cleanup(func() { _ = h.keep.Close() })
	return h
}

func (h *home) restart() {
	h.t.Helper()
	if h.keep != nil {
		if err := h.keep.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	h.notes = nil
	h.keep = approval.NewDenylist(h.path, h.store, nil, func(note string) { h.notes = append(h.notes, note) })
	h.Book = approval.NewBook(h.keep, nil)
	if err := h.Load(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) text() []byte {
	h.t.Helper()
	text, err := os.ReadFile(h.path)
	h.must(err)
	return text
}

func id(server, name string) tool.ID { return tool.ID{Server: server, Tool: name} }

func print(n int) (f tool.Fingerprint) {
	if n == takenBack {
		return f
	}
	f[0], f[31] = byte(n+1), 7
	return f
}

func denylistCandidate(name string, n int) approval.CandidateDefinition {
	return approval.CandidateDefinition{Tool: name, Fingerprint: print(n), Definition: json.RawMessage(`{}`),
		Report: func() scan.Report { return scan.Report{Verdict: scan.Clean} }}
}

func (h *home) admit(server string, all ...approval.CandidateDefinition) []approval.Evaluation {
	h.t.Helper()
	judged, err := h.AcceptTrusted(context.Background(), server, approval.EvaluationRules{Trust: approval.Auto}, all)
	h.must(err)
	return judged
}

// decideAll makes a decision of every kind.
func (h *home) decideAll() {
	h.t.Helper()
	ctx := context.Background()
	h.admit("s", denylistCandidate("fine", 1), denylistCandidate("blocked", 1), denylistCandidate("off", 1), denylistCandidate("unlisted", 1))
	h.must(h.Block(ctx, tool.KindTool, id("s", "blocked"), print(2), by))
	h.must(h.SwitchTool(ctx, id("s", "off"), false, by))
	h.must(h.ApproveLaunch(ctx, "reviewed", print(3), by))
}

// holds checks that the restrictions of decideAll are effective.
func (h *home) holds(when string) {
	h.t.Helper()
	v := h.ServerView("s")
	if e := v.ToolDecisions("blocked"); e.Block == nil || e.Block.Fingerprint != print(2) || e.Block.By != by {
		h.t.Errorf("%s: blocked is %+v", when, e)
	}
	if e := v.ToolDecisions("off"); e.Off == nil || e.Off.By != by || denylistApproves(v, "off", print(1)) {
		h.t.Errorf("%s: off is %+v", when, e)
	}
	if f := h.ServerView("reviewed").ReviewedLaunch(); f == nil || *f != print(3) {
		h.t.Errorf("%s: the reviewed launch is %v", when, f)
	}
}

// TestLostStoreUnlocksNothing covers an attack: the database is lost, and the user approves the server again as the
// status recommends. Refused and disabled tools stay locked, and a tool that the server did not list for a while does
// not return as a new one.
func TestLostStoreUnlocksNothing(t *testing.T) {
	h := newHome(t)
	h.decideAll()
	h.store.MarkLost()
	h.restart()
	h.holds("lost")
	if h.RestrictionsLost() || len(h.notes) > 0 || !h.ApprovalsLost() {
		t.Errorf("approvals lost: %v, restrictions lost: %v, notes %q", h.ApprovalsLost(), h.RestrictionsLost(), h.notes)
	}
	if h.ServerView("reviewed").ApprovedLaunch() != nil {
		t.Error("the file approves a launch")
	}
	if j := h.admit("s", denylistCandidate("fine", 1), denylistCandidate("new", 1)); j[0].Accepted || j[1].Accepted {
		t.Errorf("accepted as new: %+v", j)
	}
	launch := print(9)
	h.must(h.Approve(t.Context(), "s", by, []approval.CandidateDefinition{denylistCandidate("fine", 1), denylistCandidate("off", 1)}, &launch))
	for range 2 {
		h.holds("approved anew")
		judged := h.admit("s", denylistCandidate("unlisted", 2), denylistCandidate("new", 1))
		if judged[0].Accepted || judged[0].Why != approval.Changed {
			t.Errorf("a tool with another definition: %+v", judged)
		}
		if !denylistApproves(h.ServerView("s"), "new", print(1)) {
			t.Error("an unknown tool waits although its server was approved")
		}
		h.restart()
	}
	h.must(h.SwitchTool(t.Context(), id("s", "off"), true, by))
	h.must(h.Approve(t.Context(), "s", by, []approval.CandidateDefinition{denylistCandidate("blocked", 2)}, nil))
	h.must(h.RevokeLaunch(t.Context(), "reviewed"))
	h.store.MarkLost()
	h.restart()
	if v := h.ServerView("s"); v.ToolDecisions("off").Off != nil || v.ToolDecisions("blocked").Block != nil || h.ServerView("reviewed").ReviewedLaunch() != nil {
		t.Error("a tool that a user unlocked is locked again")
	}
	h.must(h.ForgetServer(t.Context(), "s"))
	h.store.MarkLost()
	h.restart()
	if e := h.ServerView("s").ToolDecisions("fine"); e != (approval.DefinitionDecisions{}) {
		t.Errorf("decisions about a forgotten server: %+v", e)
	}
}

// TestDamagedFileWithAGoodStore checks that nothing is lost if only the file is damaged: the damage is reported, the
// damaged file is kept, and a valid one is written.
func TestDamagedFileWithAGoodStore(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.decideAll()
			before := h.text()
			h.must(damage(h.path, before))
			h.restart()
			h.holds("damaged")
			aside, _ := filepath.Glob(h.path + ".damaged-*")
			if gone := name == "missing"; (len(h.notes) == 0) != gone || (len(aside) == 0) != gone || h.RestrictionsLost() {
				t.Errorf("notes %q, backups %q", h.notes, aside)
			}
			h.store.MarkLost()
			h.restart()
			h.holds("damaged, then the store lost")
			if len(h.notes) > 0 {
				t.Errorf("the file is still damaged: %q", h.notes)
			}
		})
	}
}

var damages = map[string]func(path string, text []byte) error{
	"missing":   func(path string, _ []byte) error { return os.Remove(path) },
	"empty":     func(path string, _ []byte) error { return os.Truncate(path, 0) },
	"junk":      func(path string, _ []byte) error { return os.WriteFile(path, bytes.Repeat([]byte("x\n"), 100), 0o600) },
	"head only": func(path string, text []byte) error { return os.Truncate(path, int64(bytes.IndexByte(text, '\n')+1)) },
	"last line cut off": func(path string, text []byte) error {
		return os.Truncate(path, int64(bytes.LastIndexByte(text[:len(text)-1], '\n')+1))
	},
	"a line taken out": func(path string, text []byte) error {
		lines := bytes.SplitAfter(text, []byte{'\n'})
		return os.WriteFile(path, bytes.Join(append(lines[:2:2], lines[3:]...), nil), 0o600)
	},
	"a line said again": func(path string, text []byte) error {
		lines := bytes.SplitAfter(text, []byte{'\n'})
		return os.WriteFile(path, append(text, lines[1]...), 0o600)
	},
}

// TestDamagedFileAndLostStore flips any bit of the file while the store is lost, too. The damage is detected, and no
// locked definition becomes callable or is accepted as new.
func TestDamagedFileAndLostStore(t *testing.T) {
	h := newHome(t)
	h.decideAll()
	good := h.text()
	for at := 0; at < len(good); at += 3 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		h.lostWith(t, fmt.Sprint("a bit of byte ", at), bad)
	}
	for at := 0; at < len(good); at += 17 {
		h.lostWith(t, fmt.Sprint("cut off at ", at), good[:at])
	}
}

// TestDamagedFileMarksALostStore checks that even a damaged file shows that a new database replaced an earlier one.
func TestDamagedFileMarksALostStore(t *testing.T) {
	h := newHome(t)
	h.decideAll()
	h.must(damages["last line cut off"](h.path, h.text()))
	h.store = &approvaltest.MemoryStore{}
	for range 2 {
		h.restart()
		if !h.ApprovalsLost() || !h.RestrictionsLost() {
			t.Errorf("approvals lost: %v, restrictions lost: %v", h.ApprovalsLost(), h.RestrictionsLost())
		}
	}
}

func (h *home) lostWith(t *testing.T, what string, text []byte) {
	t.Helper()
	other := &home{t: t, store: &approvaltest.MemoryStore{}, path: filepath.Join(t.TempDir(), "restrictions.log")}
	other.must(os.WriteFile(other.path, text, 0o600))
	other.store.MarkLost()
	other.restart()
	defer other.keep.Close()
	if !other.RestrictionsLost() {
		// A partial line that was not counted does not mean that the file is damaged. The file is then complete.
		other.holds(what)
	}
	launch := print(9)
	other.must(other.Approve(t.Context(), "s", by, nil, &launch))
	for _, j := range other.admit("s", denylistCandidate("fine", 1), denylistCandidate("blocked", 2), denylistCandidate("off", 2), denylistCandidate("unlisted", 2)) {
		if j.Accepted && (other.RestrictionsLost() || j.Tool != "fine") {
			t.Errorf("%s: %s is accepted", what, j.Tool)
		}
	}
	if len(other.notes) == 0 == other.RestrictionsLost() {
		t.Errorf("%s: %q", what, other.notes)
	}
}

// TestBothStoresOrNone checks that a decision is in both stores or in none. After a crash, a decision that only one
// store has is a restriction.
func TestBothStoresOrNone(t *testing.T) {
	ctx := t.Context()
	h := newHome(t)
	h.decideAll()
	h.store.SetError(errors.New("the database is full"))
	for name, decide := range map[string]func() error{
		"block":  func() error { return h.Block(ctx, tool.KindTool, id("s", "fine"), print(1), by) },
		"switch": func() error { return h.SwitchTool(ctx, id("s", "fine"), false, by) },
		"free":   func() error { return h.SwitchTool(ctx, id("s", "off"), true, by) },
		"forget": func() error { return h.ForgetServer(ctx, "s") },
		"revoke": func() error { return h.RevokeLaunch(ctx, "reviewed") },
	} {
		if decide() == nil {
			t.Errorf("%s: the decision was made", name)
		}
	}
	h.store.SetError(nil)
	h.holds("after decisions that failed")
	if e := h.ServerView("s").ToolDecisions("fine"); e.Off != nil || e.Block != nil {
		t.Errorf("decisions about fine: %+v", e)
	}
	h.restart()
	h.holds("after decisions that failed, and a restart")
	if v := h.ServerView("s"); !denylistApproves(v, "fine", print(1)) {
		t.Error("a failed decision took effect")
	}

	// The file cannot be written: a directory has its path.
	h.must(os.Rename(h.path, h.path+".away"))
	h.must(os.Mkdir(h.path, 0o700))
	h.must(os.WriteFile(filepath.Join(h.path, "x"), nil, 0o600))
	saves := h.store.SaveCount()
	if h.SwitchTool(ctx, id("s", "fine"), false, by) == nil || h.store.SaveCount() != saves {
		t.Error("a decision was made that only one of the two stores has")
	}
	h.must(os.RemoveAll(h.path))
	h.must(h.SwitchTool(ctx, id("s", "fine"), false, by))
	h.must(h.SwitchTool(ctx, id("s", "fine"), true, by))
	h.holds("in a file that was made anew")
}

// TestCrashes checks the states that a crash may leave: the decision in only one of the two stores, and a partial
// line in the file.
func TestCrashes(t *testing.T) {
	h := newHome(t)
	h.decideAll()
	crashed := h.text()
	h.must(h.Block(t.Context(), tool.KindTool, id("s", "fine"), print(1), by))
	ahead := h.text()
	h.must(h.Approve(t.Context(), "s", by, []approval.CandidateDefinition{denylistCandidate("fine", 1)}, nil))
	// The store already has the approval, the file still has the refusal.
	h.must(os.WriteFile(h.path, ahead, 0o600))
	h.restart()
	if e := h.ServerView("s").ToolDecisions("fine"); e.Block == nil || e.Pin != nil {
		t.Errorf("a refusal that is only in the file: %+v", e)
	}
	h.must(h.Approve(t.Context(), "s", by, []approval.CandidateDefinition{denylistCandidate("fine", 1)}, nil))
	half := append(bytes.Clone(crashed), `0123 {"server":"s","na`...)
	h.must(os.WriteFile(h.path, half, 0o600))
	h.restart()
	h.holds("with half a line")
	if len(h.notes) > 0 {
		t.Errorf("notes about a partial line: %q", h.notes)
	}
	h.must(h.SwitchTool(t.Context(), id("s", "fine"), false, by))
	h.restart()
	if h.ServerView("s").ToolDecisions("fine").Off == nil || len(h.notes) > 0 {
		t.Errorf("notes about a line after a partial line: %q", h.notes)
	}
}

func TestTheFileStaysSmall(t *testing.T) {
	h := newHome(t)
	h.decideAll()
	for i := range 1_500 {
		h.must(h.SwitchTool(t.Context(), id("s", "fine"), i%2 == 0, by))
	}
	if n := len(h.text()); n > 300_000 {
		t.Errorf("%d bytes for five entries", n)
	}
	h.restart()
	h.holds("compacted")
	if info, err := os.Stat(h.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// model is a minimal model of the decisions about the tools of one server.
type model struct {
	lost, known           bool // approvals were lost; the server was approved since
	reviewed              bool // the server was approved, possibly before the loss
	pin, was, block, offs map[string]int
	before                map[string]before // the decisions that an approval replaced
}

// before is the decision that an approval replaced: the approved and the blocked definition, none if there was none.
type before struct{ pin, block int }

const none = -2

func newModel() model {
	return model{pin: map[string]int{}, was: map[string]int{}, block: map[string]int{}, offs: map[string]int{}, before: map[string]before{}}
}

func (m model) copy() model {
	m.pin, m.was, m.block, m.offs = maps.Clone(m.pin), maps.Clone(m.was), maps.Clone(m.block), maps.Clone(m.offs)
	m.before = maps.Clone(m.before)
	return m
}

// takenBack is the stored value in block for a withdrawn approval.
const takenBack = -1

func (m *model) takeBack(name string) {
	if _, pinned := m.pin[name]; !pinned {
		return
	}
	delete(m.pin, name)
	if was, there := m.before[name]; there {
		delete(m.before, name)
		if _, blocked := m.block[name]; !blocked && was.block != none {
			m.block[name] = was.block
		}
		_, blocked := m.block[name]
		if was.pin != none && !has(m.block, name, was.pin) {
			m.pin[name] = was.pin
			return
		} else if blocked {
			return
		}
	}
	if _, blocked := m.block[name]; !blocked {
		m.block[name] = takenBack
	}
}

func has(in map[string]int, name string, n int) bool {
	v, there := in[name]
	return there && v == n
}

func (m *model) admit(name string, n int) {
	_, pinned := m.pin[name]
	_, blocked := m.block[name]
	_, was := m.was[name]
	if !blocked && !has(m.pin, name, n) && (pinned || (!m.lost || m.known) && (!was || has(m.was, name, n))) {
		m.accept(name, n)
		delete(m.before, name)
	}
}

// approve models an approval by a user. accept models the consequences of any approval.
func (m *model) approve(name string, n int) {
	if !has(m.pin, name, n) {
		was := before{none, none}
		if pin, pinned := m.pin[name]; pinned {
			was.pin = pin
		}
		if block, blocked := m.block[name]; blocked {
			was.block = block
		}
		if m.before[name] = was; was == (before{none, none}) {
			delete(m.before, name)
		}
	}
	m.accept(name, n)
}

func (m *model) accept(name string, n int) {
	m.pin[name] = n
	delete(m.was, name)
	if has(m.block, name, n) || has(m.block, name, takenBack) {
		delete(m.block, name)
	}
}

func (m *model) refuse(name string, n int) {
	m.block[name] = n
	if has(m.pin, name, n) {
		delete(m.pin, name)
		delete(m.before, name)
	}
}

func (m *model) lose() {
	clear(m.before)
	m.lost, m.known = true, false
	maps.Copy(m.was, m.pin)
	clear(m.pin)
}

// setBack models the restoration of an older store: the less permissive of both states applies.
func (m *model) setBack(old model) {
	approved := maps.Clone(m.was)
	maps.Copy(approved, m.pin)
	next := newModel()
	next.lost, next.known, next.reviewed = old.lost, old.known && m.reviewed, m.reviewed
	maps.Copy(next.block, old.block)
	maps.Copy(next.block, m.block)
	maps.Copy(next.offs, old.offs)
	maps.Copy(next.offs, m.offs)
	for _, name := range modelNames {
		n, pinned := old.pin[name]
		_, refused := m.block[name]
		_, off := m.offs[name]
		now, was := approved[name]
		forgotten := !was && !refused && !off
		switch {
		case pinned && (forgotten || has(approved, name, n)) && !has(next.block, name, n):
			next.pin[name] = n
			if was, there := old.before[name]; there {
				next.before[name] = was
			}
		case was:
			next.was[name] = now
		}
	}
	*m = next
}

// differs returns the difference between a view and the model, "" if there is none.
func (m *model) differs(v *approval.ServerView) string {
	for _, name := range modelNames {
		e := v.ToolDecisions(name)
		pin, pinned := m.pin[name]
		block, blocked := m.block[name]
		switch {
		case (e.Pin != nil) != pinned, e.Pin != nil && e.Pin.Fingerprint != print(pin):
			return name + " is approved otherwise"
		case (e.Block != nil) != blocked, e.Block != nil && e.Block.Fingerprint != print(block):
			return name + " is refused otherwise"
		case (e.Off != nil) != has(m.offs, name, 1):
			return name + " is switched otherwise"
		}
	}
	return ""
}

var modelNames = []string{"a", "b", "c", "d"}

// TestAnOldStoreWithABlockedBaseline covers an older store with a definition that was approved and then blocked. A
// later block of another definition does not approve it.
func TestAnOldStoreWithABlockedBaseline(t *testing.T) {
	h, ctx := newHome(t), t.Context()
	approve := func(n int) {
		h.must(h.Approve(ctx, "s", by, []approval.CandidateDefinition{denylistCandidate("a", n)}, nil))
	}
	approve(1)
	h.must(h.Block(ctx, tool.KindTool, id("s", "a"), print(1), by))
	old := h.store.Copy()
	approve(1)
	h.must(h.Block(ctx, tool.KindTool, id("s", "a"), print(0), by))
	h.store = old
	h.restart()
	if e := h.ServerView("s").ToolDecisions("a"); e.Approves(print(1)) || e.Pin != nil || e.Block == nil || e.Block.Fingerprint != print(0) {
		t.Errorf("%+v", e)
	}
}

// TestNoHistoryGrantsAccess checks that, after any history of decisions, restarts, losses of the store and restored
// old stores, the approved, blocked and disabled definitions are exactly those of the model. A loss removes
// approvals, and nothing else.
func TestNoHistoryGrantsAccess(t *testing.T) {
	seed := volume.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 3))
	h, m, ctx := newHome(t), newModel(), t.Context()
	old, then := h.store.Copy(), m.copy()
	for i := range volume.FullOrQuick(2_000, 500) {
		name, n := modelNames[r.IntN(len(modelNames))], r.IntN(3)
		step := r.IntN(100)
		switch {
		case step < 40:
			h.admit("s", denylistCandidate(name, n))
			m.admit(name, n)
		case step < 55:
			h.must(h.Approve(ctx, "s", by, []approval.CandidateDefinition{denylistCandidate(name, n)}, nil))
			m.approve(name, n)
		case step < 58:
			pin, pinned := m.pin[name]
			if err := h.UndoApproval(ctx, denylistCandidate(name, pin), id("s", name), print(pin), approval.Manual, by); (err == nil) != pinned {
				t.Fatalf("seed %d, step %d: withdrawn, approved %v: %v", seed, i, pinned, err)
			}
			m.takeBack(name)
		case step < 65:
			h.must(h.Block(ctx, tool.KindTool, id("s", name), print(n), by))
			m.refuse(name, n)
		case step < 75:
			off := r.IntN(2)
			h.must(h.SwitchTool(ctx, id("s", name), off == 0, by))
			if delete(m.offs, name); off == 1 {
				m.offs[name] = 1
			}
		case step < 80:
			launch := print(9)
			h.must(h.Approve(ctx, "s", by, nil, &launch))
			m.known, m.reviewed = true, true
		case step < 81:
			h.must(h.ForgetServer(ctx, "s"))
			lost := m.lost
			m = newModel()
			m.lost = lost
		case step < 85:
			h.store.MarkLost()
			h.restart()
			m.lose()
		case step < 88: // while it runs: the store is written again
			h.store.MarkLost()
			h.must(h.RewriteStore(ctx, func(tool.DefinitionKind, tool.ID, tool.Fingerprint) json.RawMessage { return nil }))
		case step < 91:
			old, then = h.store.Copy(), m.copy()
		case step < 93:
			h.store = old.Copy()
			h.restart()
			m.setBack(then)
		default:
			h.restart()
		}
		if d := m.differs(h.ServerView("s")); d != "" {
			t.Fatalf("seed %d, step %d (%d, %s, %d): %s; model %+v", seed, i, step, name, n, d, m)
		}
	}
}

// denylistApproves reports whether the book allows calls with this definition of a tool: it is approved, and the tool
// is not switched off.
func denylistApproves(v *approval.ServerView, name string, f tool.Fingerprint) bool {
	e := v.ToolDecisions(name)
	return e.Off == nil && e.Approves(f)
}
