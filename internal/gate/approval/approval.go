package approval

import (
	"encoding/json"
	"strings"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// Trust is which definitions are accepted without a person. What is none of
// these counts as Manual.
type Trust string

// The kinds of trust.
const (
	Manual Trust = "manual" // none
	Scan   Trust = "scan"   // at first sight those that the scanner finds clean
	Auto   Trust = "auto"   // all, but no change that loosens a hint
)

const byTrust = "trust:"

// By is who accepted for a trust, as Pin.By has it.
func (t Trust) By() string { return byTrust + string(t) }

// Why is why a definition waits for a person; "" when it is approved.
type Why string

// The reasons.
const (
	New     Why = "new"     // none of the tool's definitions is approved
	Changed Why = "changed" // another one is
	Blocked Why = "blocked" // a person refused this very one
)

// Words are all reasons.
func (Why) Words() []string { return []string{string(New), string(Changed), string(Blocked)} }

// Pin is a definition that is approved.
type Pin struct {
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // that the definition declares, or is taken to
	Mark
	// Before is what was decided until a user approved this definition; nil when
	// nothing was. TakeBack returns to it.
	Before *Before
}

// Before is what an approval has replaced. Its pin has no Before of its own.
type Before struct {
	Pin   *Pin
	Block *Block
}

// ByPerson reports whether a person has approved, not the trust in the server.
func (p *Pin) ByPerson() bool { return !strings.HasPrefix(p.By, byTrust) }

// Mark is who did something, and when.
type Mark struct {
	By string
	At time.Time
}

// Block is a definition that a person refused. One without a fingerprint refuses
// none by name: a person took an approval back, or the trust in the server is not
// enough (Doubt), so that whatever the tool is like waits until a person approves it.
type Block struct {
	Fingerprint tool.Fingerprint
	Mark
}

// TakesBack reports whether the block stands for an approval that was taken back.
func (b *Block) TakesBack() bool { return b.Fingerprint == tool.Fingerprint{} }

// Ends reports whether an approval does not count beside the block.
func (b *Block) Ends(p *Pin) bool {
	return b.Fingerprint == p.Fingerprint || b.TakesBack() && !p.At.After(b.At)
}

// refuses reports whether the block is of this definition, or of all.
func (b *Block) refuses(f tool.Fingerprint) bool { return b.Fingerprint == f || b.TakesBack() }

// Entry is what is decided about one tool or offer. The zero value is: nothing.
// What it points to never changes.
type Entry struct {
	Pin   *Pin
	Block *Block
	Off   *Mark // a person switched the tool off
	// Was is the definition that was approved, when that approval is lost: another
	// one is not new. It is not stored with the rest.
	Was *tool.Fingerprint
	// Unsigned is an approval that does not count, since a person has to sign it and none
	// has. It stays stored.
	Unsigned *Pin
}

// Decided reports whether anything is decided, other than what is lost.
func (e Entry) Decided() bool {
	return e.Pin != nil || e.Block != nil || e.Off != nil || e.Unsigned != nil
}

// Approves reports whether the definition with this fingerprint is the approved
// one.
func (e Entry) Approves(f tool.Fingerprint) bool { return e.Pin != nil && e.Pin.Fingerprint == f }

// ByScan reports whether nobody has approved the definition but the trust in its
// server, since the scanner found it clean.
func (e Entry) ByScan(f tool.Fingerprint) bool { return e.Approves(f) && e.Pin.By == Scan.By() }

// Launch is how a server may be launched or reached, as a person approved it.
type Launch struct {
	Server      string
	Fingerprint tool.Fingerprint
	Mark
}

// Proposal is a server that an agent proposes. Server is its entry as the
// proposer gave it; only the gateway reads it.
type Proposal struct {
	Name   string
	Server json.RawMessage
	Mark
}

// Held is since when a definition waits for a person: it was held then for the
// first time.
type Held struct {
	Kind        tool.Kind
	Tool        string // its name or address
	Fingerprint tool.Fingerprint
	Since       time.Time
}

// Candidate is a definition to judge.
type Candidate struct {
	Kind        tool.Kind
	Tool        string // its name; of an offer the name or address
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // as declared, or as it is taken to
	Definition  json.RawMessage
	// Report returns what the scanner says of it. It is asked only when that
	// matters, perhaps more than once and at the same time as others.
	Report func() scan.Report
	// Orders reports whether it orders something about a tool of another server. It
	// is asked like Report; nil is that it does not.
	Orders func() bool
}

// doubtful reports whether the trust in a server is not enough for it, whatever
// becomes of the other server.
func (c Candidate) doubtful(t Trust) bool { return t != Auto && c.Orders != nil && c.Orders() }

func (c Candidate) pin(m Mark) *Pin { return &Pin{Fingerprint: c.Fingerprint, Hints: c.Hints, Mark: m} }

func (c Candidate) row(e Entry) Row { return Row{c.Kind, c.Tool, e, c.Definition} }

// Row is what is stored of a tool or an offer.
type Row struct {
	Kind tool.Kind
	Tool string // its name or address
	Entry
	// Definition is the approved one, nil when it is stored already.
	Definition json.RawMessage
}

// Change is what is stored at once.
type Change struct {
	Server  string // "" when it is about a proposal alone
	Forget  bool   // everything of the server, before the rest is stored
	Tools   []Row
	Launch  *Launch
	Unpin   bool // the launch is approved no more
	Propose *Proposal
	Settle  string // the proposal of this name is over
}

// Saved is everything that was stored. Definitions are left out.
type Saved struct {
	Tools     map[string][]Row // by server
	Launches  []Launch
	Proposals []Proposal
	// Held is since when definitions wait, by server.
	Held map[string][]Held
	// Lost reports whether an earlier store was damaged: there were approvals that are
	// not among these.
	Lost bool
	// Reviewed are the launches that were approved, by server, where the approval
	// is lost; of tools Entry.Was has that.
	Reviewed map[string]tool.Fingerprint
	// RestrictionsLost reports whether also refusals and switches may be missing.
	RestrictionsLost bool
}
