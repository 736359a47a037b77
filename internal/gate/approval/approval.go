package approval

import (
	"encoding/json"
	"strings"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// Trust says which definitions are accepted automatically. Unknown values count as Manual.
type Trust string

// The kinds of trust.
const (
	Manual Trust = "manual" // none
	Scan   Trust = "scan"   // new ones that the scanner finds clean
	Auto   Trust = "auto"   // all, except changes that loosen a hint
)

const byTrust = "trust:"

// By returns the value of Pin.By for an automatic approval.
func (t Trust) By() string { return byTrust + string(t) }

// Why is why a definition waits for review; "" if it is approved.
type Why string

// The reasons.
const (
	New     Why = "new"     // no definition of the tool is approved
	Changed Why = "changed" // another definition is approved
	Blocked Why = "blocked" // a user refused this definition
)

// Words returns all reasons.
func (Why) Words() []string { return []string{string(New), string(Changed), string(Blocked)} }

// Pin is an approved definition.
type Pin struct {
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // declared or inferred
	Mark
	// Before is the decision that this approval replaced, or nil. TakeBack restores it.
	Before *Before
}

// Before is what an approval replaced. Its pin has no Before.
type Before struct {
	Pin   *Pin
	Block *Block
}

// ByUser reports whether a user has approved the definition, and not the trust in the server.
func (p *Pin) ByUser() bool { return !strings.HasPrefix(p.By, byTrust) }

// Mark is the author and time of a decision.
type Mark struct {
	By string
	At time.Time
}

// Block is a definition that a user refused. Without a fingerprint it applies to all definitions of the
// tool: a user took an approval back, or the trust in the server is not enough (Doubt), so that every
// definition waits for review.
type Block struct {
	Fingerprint tool.Fingerprint
	Mark
}

// TakesBack reports whether the block represents an approval that was taken back.
func (b *Block) TakesBack() bool { return b.Fingerprint == tool.Fingerprint{} }

// Overrides reports whether the block overrides an approval.
func (b *Block) Overrides(p *Pin) bool {
	return b.Fingerprint == p.Fingerprint || b.TakesBack() && !p.At.After(b.At)
}

// refuses reports whether the block applies to this definition.
func (b *Block) refuses(f tool.Fingerprint) bool { return b.Fingerprint == f || b.TakesBack() }

// Entry has the decisions about one tool, prompt, resource or the instructions. The zero value is "none".
// The values it points to are immutable.
type Entry struct {
	Pin   *Pin
	Block *Block
	Off   *Mark // a user switched the tool off
	// Was is the approved definition if the approval itself is lost: a different definition is then not
	// new. It is stored separately.
	Was *tool.Fingerprint
	// Unsigned is an approval that does not count because the required signature is missing. It stays
	// stored.
	Unsigned *Pin
}

// Decided reports whether there is any decision, other than a lost one.
func (e Entry) Decided() bool {
	return e.Pin != nil || e.Block != nil || e.Off != nil || e.Unsigned != nil
}

// Approves reports whether the definition with this fingerprint is approved.
func (e Entry) Approves(f tool.Fingerprint) bool { return e.Pin != nil && e.Pin.Fingerprint == f }

// ByScan reports whether the definition was approved automatically after a clean scan.
func (e Entry) ByScan(f tool.Fingerprint) bool { return e.Approves(f) && e.Pin.By == Scan.By() }

// Launch is an approved way to start or reach a server.
type Launch struct {
	Server      string
	Fingerprint tool.Fingerprint
	Mark
}

// Proposal is a server that an agent proposes. Server is the entry as proposed; only the gateway parses
// it.
type Proposal struct {
	Name   string
	Server json.RawMessage
	Mark
}

// Held says since when a definition waits for review.
type Held struct {
	Kind        tool.DefinitionKind
	Tool        string // name or address
	Fingerprint tool.Fingerprint
	Since       time.Time
}

// Candidate is a definition to evaluate.
type Candidate struct {
	Kind        tool.DefinitionKind
	Tool        string // name, or address of a resource
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // declared or inferred
	Definition  json.RawMessage
	// Report returns the scan report. It is called only when needed, possibly several times and
	// concurrently.
	Report func() scan.Report
	// Orders reports whether the definition gives instructions about a tool of another server. It is
	// called like Report; nil means no.
	Orders func() bool
}

// isDoubtful reports whether the trust in a server is not enough for the definition.
func (c Candidate) isDoubtful(t Trust) bool { return t != Auto && c.Orders != nil && c.Orders() }

func (c Candidate) pin(m Mark) *Pin { return &Pin{Fingerprint: c.Fingerprint, Hints: c.Hints, Mark: m} }

func (c Candidate) row(e Entry) Row { return Row{c.Kind, c.Tool, e, c.Definition} }

// Row is the stored form of an Entry.
type Row struct {
	Kind tool.DefinitionKind
	Tool string // name or address
	Entry
	// Definition is the approved definition, nil if already stored.
	Definition json.RawMessage
}

// Change is what is stored in one write.
type Change struct {
	Server  string // "" if it concerns only a proposal
	Forget  bool   // delete everything about the server first
	Tools   []Row
	Launch  *Launch
	Unpin   bool // revoke the approved launch
	Propose *Proposal
	Settle  string // remove the proposal with this name
}

// Saved is everything that is stored, without the definitions.
type Saved struct {
	Tools     map[string][]Row // by server
	Launches  []Launch
	Proposals []Proposal
	// Held says since when definitions wait, by server.
	Held map[string][]Held
	// Lost reports whether an earlier store was damaged and approvals are missing.
	Lost bool
	// Reviewed are approved launches whose approval is lost, by server. For tools see Entry.Was.
	Reviewed map[string]tool.Fingerprint
	// RestrictionsLost reports whether blocks and switches may be missing, too.
	RestrictionsLost bool
}
