package approval

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// Trust determines which definitions are accepted automatically. Unknown values count as Manual.
type Trust string

// The kinds of trust.
const (
	Manual Trust = "manual" // no definitions
	Scan   Trust = "scan"   // new definitions that the scanner finds clean
	Auto   Trust = "auto"   // all definitions, except changes that loosen a hint
)

const byTrust = "trust:"

// AutomaticApproverName returns the value of Pin.By for an automatic approval.
func (t Trust) AutomaticApproverName() string { return byTrust + string(t) }

// WaitReason is the reason why a definition waits for review; "" if it is approved.
type WaitReason string

// The reasons.
const (
	New     WaitReason = "new"     // no definition of the tool is approved
	Changed WaitReason = "changed" // another definition is approved
	Blocked WaitReason = "blocked" // a user refused this definition
)

// Words returns all reasons.
func (WaitReason) Words() []string { return []string{string(New), string(Changed), string(Blocked)} }

// Pin is an approved definition.
type Pin struct {
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // declared or inferred
	AuthorAndTime
	// Before is the decision that this approval replaced, or nil. UndoApproval restores it.
	Before *ReplacedDecision
}

// ReplacedDecision is the decision that an approval replaced. Its Pin has no Before.
type ReplacedDecision struct {
	Pin   *Pin
	Block *Block
}

// ByUser reports whether a user approved the definition, rather than the trust setting of the server.
func (p *Pin) ByUser() bool { return !strings.HasPrefix(p.By, byTrust) }

// AuthorAndTime is the author and time of a decision.
type AuthorAndTime struct {
	By string
	At time.Time
}

// Block is a definition that a user refused. Without a fingerprint it applies to all definitions of the tool, so that
// each of them waits for review: either a user withdrew an approval, or the trust setting is not sufficient
// (HoldCrossServerInstructions).
type Block struct {
	Fingerprint tool.Fingerprint
	AuthorAndTime
}

// IsWithdrawal reports whether the block represents a withdrawn approval.
func (b *Block) IsWithdrawal() bool { return b.Fingerprint == tool.Fingerprint{} }

// Overrides reports whether the block overrides an approval.
func (b *Block) Overrides(p *Pin) bool {
	return b.Fingerprint == p.Fingerprint || b.IsWithdrawal() && !p.At.After(b.At)
}

// appliesTo reports whether the block applies to this definition.
func (b *Block) appliesTo(f tool.Fingerprint) bool { return b.Fingerprint == f || b.IsWithdrawal() }

// DefinitionDecisions contains the decisions about one tool, prompt, resource or the instructions. The zero value
// contains none. The values that it points to are immutable.
type DefinitionDecisions struct {
	Pin   *Pin
	Block *Block
	Off   *AuthorAndTime // a user switched the tool off
	// Was is the approved definition if the approval itself is lost. A different definition is then changed, not new.
	// It is stored separately.
	Was *tool.Fingerprint
	// Unsigned is an approval that is not valid because the required signature is missing. It stays stored.
	Unsigned *Pin
	// Baseline is an approval that is not valid because Block overrides it. It stays stored, so that definitions can
	// be compared with it when the block ends.
	Baseline *Pin
}

// ComparisonBase returns the approved definition, or else the last approved one unless a user refused it; nil if
// there is none. A definition under review is compared with it.
func (e DefinitionDecisions) ComparisonBase() *Pin {
	if e.Pin == nil && e.Baseline != nil && e.Block != nil && e.Block.IsWithdrawal() {
		return e.Baseline
	}
	return e.Pin
}

// endRefusedApproval makes an approval the baseline if the block overrides it.
func (e *DefinitionDecisions) endRefusedApproval() {
	if e.isApprovalRefused() {
		e.Pin, e.Baseline = nil, e.Pin
	}
}

// baselineOf returns the approval with which a definition is compared when its block ends: the approval before its
// own, else the last one; nil if there is none.
func (e *DefinitionDecisions) baselineOf(f tool.Fingerprint) *Pin {
	last := cmp.Or(e.Pin, e.Baseline)
	if last != nil && last.Fingerprint == f && last.Before != nil && last.Before.Pin != nil {
		return last.Before.Pin
	}
	return last
}

func (e *DefinitionDecisions) isApprovalRefused() bool {
	return e.Pin != nil && e.Block != nil && e.Block.Overrides(e.Pin)
}

// HasDecision reports whether there is any decision, other than a lost one.
func (e DefinitionDecisions) HasDecision() bool {
	return e.Pin != nil || e.Block != nil || e.Off != nil || e.Unsigned != nil
}

// Approves reports whether the definition with this fingerprint is approved.
func (e DefinitionDecisions) Approves(f tool.Fingerprint) bool {
	return e.Pin != nil && e.Pin.Fingerprint == f
}

// ApprovedByScan reports whether the definition was approved automatically after a clean scan.
func (e DefinitionDecisions) ApprovedByScan(f tool.Fingerprint) bool {
	return e.Approves(f) && e.Pin.By == Scan.AutomaticApproverName()
}

// ApprovedLaunch is an approved way to start or reach a server.
type ApprovedLaunch struct {
	Server      string
	Fingerprint tool.Fingerprint
	AuthorAndTime
}

// ServerProposal is a server that an agent proposes. Server is the proposed entry; only the gateway parses it.
type ServerProposal struct {
	Name   string
	Server json.RawMessage
	AuthorAndTime
}

// HeldDefinition is a definition that waits for review, with the time since when it waits.
type HeldDefinition struct {
	Kind        tool.DefinitionKind
	Tool        string // name or address
	Fingerprint tool.Fingerprint
	Since       time.Time
}

// CandidateDefinition is a definition to evaluate.
type CandidateDefinition struct {
	Kind        tool.DefinitionKind
	Tool        string // name, or address of a resource
	Fingerprint tool.Fingerprint
	Hints       tool.Hints // declared or inferred
	Definition  json.RawMessage
	// Report returns the scan report. It is called only when needed, possibly several times and
	// concurrently.
	Report func() scan.Report
	// Orders reports whether the definition contains instructions about a tool of another server. It is called under
	// the same conditions as Report; nil means no.
	Orders func() bool
}

// exceedsTrust reports whether the trust setting is not sufficient for the definition.
func (c CandidateDefinition) exceedsTrust(t Trust) bool {
	return t != Auto && c.Orders != nil && c.Orders()
}

func (c CandidateDefinition) newPin(m AuthorAndTime) *Pin {
	return &Pin{Fingerprint: c.Fingerprint, Hints: c.Hints, AuthorAndTime: m}
}

func (c CandidateDefinition) newDecisionRow(e DefinitionDecisions) DecisionRow {
	return DecisionRow{c.Kind, c.Tool, e, c.Definition}
}

// DecisionRow is the stored form of DefinitionDecisions.
type DecisionRow struct {
	Kind tool.DefinitionKind
	Tool string // name or address
	DefinitionDecisions
	// Definition is the approved definition, nil if already stored.
	Definition json.RawMessage
}

// ChangeSet is a set of changes that are stored in one write.
type ChangeSet struct {
	Server         string // "" if it concerns only a proposal
	Forget         bool   // delete everything about the server first
	Tools          []DecisionRow
	Launch         *ApprovedLaunch
	RevokeLaunch   bool // revoke the approved launch
	Propose        *ServerProposal
	RemoveProposal string // remove the proposal with this name
}

// StoredDecisions is everything that is stored, without the definitions.
type StoredDecisions struct {
	Tools     map[string][]DecisionRow // by server
	Launches  []ApprovedLaunch
	Proposals []ServerProposal
	// Held contains, by server, the definitions that wait and since when.
	Held map[string][]HeldDefinition
	// Lost reports whether an earlier store was damaged and approvals are missing.
	Lost bool
	// Reviewed are approved launches whose approval is lost, by server. For tools see DefinitionDecisions.Was.
	Reviewed map[string]tool.Fingerprint
	// RestrictionsLost reports whether blocks and switches may be missing, too.
	RestrictionsLost bool
}
