package ops

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// Removed names a removed server.
type Removed struct {
	Removed string `json:"removed" doc:"The name of the server that is gone."`
}

// Waiting lists everything that waits for a user's approval.
type Waiting struct {
	Servers []WaitingServer `json:"servers"`
	Tools   []WaitingTool   `json:"tools" doc:"Of servers that are not quarantined, a page of them; the tools of the others are part of the server's review."`
	// TotalTools counts the tools of all pages.
	TotalTools int            `json:"total_tools"`
	Offers     []WaitingOffer `json:"offers" doc:"Prompts, resources, templates and instructions, in the same form as tools: a page of them."`
	// TotalOffers counts the primitives of all pages.
	TotalOffers int `json:"total_offers"`
	WaitingTotals
	// Forgotten is absent when no approvals were lost.
	Forgotten []Forgotten `json:"forgotten,omitempty" doc:"Servers whose approvals were lost with an earlier database: one approval of such a server is for all that is listed of it."`
	Warnings  []string    `json:"warnings,omitempty" doc:"Why many items wait, if no user caused that."`
}

// WaitingTotals counts the definitions of all pages.
type WaitingTotals struct {
	TotalBlocked  int `json:"total_blocked" doc:"Blocked tools and other definitions; they are included in the totals."`
	TotalFindings int `json:"total_findings" doc:"Tools and other definitions with a finding that are not blocked."`
	TotalPoisoned int `json:"total_poisoned" doc:"Those of total_findings that look poisoned: their verdict is block."`
}

// addDefinition counts a definition.
func (w *WaitingTotals) addDefinition(reason approval.WaitReason, s ScanResult) {
	if reason == approval.Blocked {
		w.TotalBlocked++
		return
	}
	if len(s.Findings) > 0 {
		w.TotalFindings++
	}
	if s.Verdict == scan.Block {
		w.TotalPoisoned++
	}
}

// Forgotten is a server whose approvals were lost and that no user has approved since.
type Forgotten struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools" doc:"How many of its tools wait."`
	Offers int    `json:"offers" doc:"Number of its prompts, resources, templates and instructions that wait."`
}

// WaitingServer is a server that waits for review.
type WaitingServer struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage" enum:"launch,definitions" doc:"launch: nothing is started before it is approved. definitions: it runs for the review only."`
	Fingerprint string      `json:"fingerprint" doc:"The fingerprint to send with an approval."`
	ProposedBy  string      `json:"proposed_by,omitempty"`
	ProposedAt  *time.Time  `json:"proposed_at,omitempty"`
	ClientName  string      `json:"client_name,omitempty" doc:"How the client calls itself that proposed it."`
	SessionID   string      `json:"session_id,omitempty" doc:"The session of the client that proposed it."`
	Since       *time.Time  `json:"since,omitempty" doc:"Since when it waits at this stage; absent when that is not known."`
	Launch      LaunchView  `json:"launch"`
	ToolCount   int         `json:"tool_count"`
	OfferCount  int         `json:"offer_count" doc:"How many prompts, resources, templates and instructions it has."`
	Findings    int         `json:"findings" doc:"How many findings the scanner has in its definitions and instructions."`
}

// PendingInfo says why a definition awaits approval, and which values an approval must name.
type PendingInfo struct {
	Reason      approval.WaitReason `json:"reason" doc:"new, changed or blocked."`
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint to send with an approval."`
	Approved    string              `json:"approved,omitempty" doc:"The fingerprint that is approved, when the definition changed."`
	Since       *time.Time          `json:"since,omitempty" doc:"Since when it waits; absent when that is not known."`
	Together    bool                `json:"together,omitempty" doc:"Whether it can be approved in a batch: it has no findings, loosens no hint, was never blocked, and its approved definition is known."`
}

// ScanResult is the scanner's result for a definition.
type ScanResult struct {
	Verdict  scan.Verdict   `json:"verdict"`
	Findings []scan.Finding `json:"findings"`
}

// WaitingOffer is a prompt, resource, template or instructions that waits for approval.
type WaitingOffer struct {
	Kind   tool.DefinitionKind `json:"kind" doc:"prompt, resource, template or instructions."`
	Server string              `json:"server"`
	Name   string              `json:"name,omitempty" doc:"The name of the prompt, the address of the resource, the template. Instructions have none."`
	PendingInfo
	ScanResult
}

// WaitingTool is a tool that waits for approval.
type WaitingTool struct {
	Name   string `json:"name" doc:"The tool id: server:tool."`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	PendingInfo
	Loosened []string                `json:"loosened,omitempty" doc:"The hints that the change loosens."`
	Lane     string                  `json:"lane" words:"operation" doc:"What it counts as once it is approved: the operation of its call_with."`
	Guessed  bool                    `json:"guessed,omitempty" doc:"Neither the server nor an override says what the tool does."`
	What     *approval.ChangeSummary `json:"what,omitempty" doc:"What has changed; absent when there is nothing to hold it against."`
	ScanResult
}

// BatchDecision is the result of one decision of a batch.
type BatchDecision struct {
	Name    string
	Problem error // nil when the decision was made
}

// ReviewStage is the stage of a server's review.
type ReviewStage string

// The stages.
const (
	StageLaunch      ReviewStage = "launch"      // the launch waits for approval: the server is neither started nor contacted
	StageDefinitions ReviewStage = "definitions" // the definitions wait: the server runs for the review only
	StageApproved    ReviewStage = "approved"    // not quarantined; single tools may wait
)

// Words returns all stages.
func (ReviewStage) Words() []string {
	return []string{string(StageLaunch), string(StageDefinitions), string(StageApproved)}
}

// LaunchView is how a server is started or reached. A user approves it first. Secrets are masked once it is approved.
type LaunchView struct {
	Protocol   string   `json:"protocol"`
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Env        []string `json:"env,omitempty" doc:"The names of the environment variables."`
	WorkingDir string   `json:"working_dir,omitempty"`
	URL        string   `json:"url,omitempty"`
	Headers    []string `json:"headers,omitempty" doc:"The names of the headers."`
}

// ServerReview is what a user reviews before approving a server.
type ServerReview struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage"`
	Notice      string      `json:"notice,omitempty" doc:"A notice before the decision: earlier blocks may be lost."`
	Fingerprint string      `json:"fingerprint" doc:"The fingerprint to send with the approval of this stage: of the launch, or of the launch and all shown definitions and instructions."`
	Launch      LaunchView  `json:"launch"`
	ProposedBy  string      `json:"proposed_by,omitempty"`
	ProposedAt  *time.Time  `json:"proposed_at,omitempty"`
	// ProposedEnv includes values, because they can change what the command does.
	ProposedEnv map[string]string `json:"proposed_env,omitempty" doc:"The environment that is proposed, with its values, as long as the launch waits."`
	// LaunchApprovedBy and LaunchApprovedAt are set once the launch is approved.
	LaunchApprovedBy string         `json:"launch_approved_by,omitempty"`
	LaunchApprovedAt *time.Time     `json:"launch_approved_at,omitempty"`
	State            string         `json:"state"`
	LastError        string         `json:"last_error,omitempty"`
	Listed           bool           `json:"listed" doc:"Whether the server has told its tools. Without them the definitions cannot be approved."`
	Instructions     string         `json:"instructions,omitempty" doc:"What the server tells clients about itself, as it is."`
	Verdict          scan.Verdict   `json:"verdict" doc:"Of the instructions."`
	Findings         []scan.Finding `json:"findings" doc:"In the instructions."`
	Tools            []ReviewedTool `json:"tools"`
	// Offers lists waiting primitives first, at most 5,000 in all.
	Offers      []ReviewedOffer `json:"offers" doc:"Prompts, resources, templates and instructions, pending ones first. At most 5,000; an approval covers those that are shown."`
	TotalOffers int             `json:"total_offers"`
}

// ApprovalStatus is the approval status of a definition under review.
type ApprovalStatus struct {
	Fingerprint string              `json:"fingerprint"`
	Status      string              `json:"status,omitempty" words:"shown status"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
}

// ReviewedOffer is a prompt, resource, template or instructions of a server under review.
type ReviewedOffer struct {
	Kind tool.DefinitionKind `json:"kind" doc:"prompt, resource, template or instructions."`
	Name string              `json:"name,omitempty"`
	ApprovalStatus
	ForClients bool            `json:"for_clients,omitempty" doc:"The server has listed it to clients, not to MCPProxy."`
	Definition json.RawMessage `json:"definition" doc:"As the server sent it; of instructions the text."`
	// Changes is set for the first 100 changed definitions.
	Changes []approval.Difference `json:"changes,omitempty" doc:"How it differs from the approved definition."`
	ScanResult
}

// ReviewedTool is a tool of a server under review.
type ReviewedTool struct {
	Tool string `json:"tool"`
	ApprovalStatus
	Definition json.RawMessage `json:"definition" doc:"The whole definition as the server sent it."`
	// Changes is set for the first 100 changed definitions.
	Changes []approval.Difference `json:"changes,omitempty" doc:"How it differs from the approved definition."`
	ScanResult
}

// Comparison is a definition, the approved one, and the differences. Changes are never null in JSON.
type Comparison struct {
	Approved   *ApprovedView         `json:"approved,omitempty" doc:"Absent when none was approved, or when its text is lost."`
	Definition json.RawMessage       `json:"definition"`
	Changes    []approval.Difference `json:"changes" doc:"Member by member; empty when nothing changed."`
	Truncated  bool                  `json:"truncated,omitempty" doc:"There are more changes, or longer ones, than are shown."`
}

// OfferDiff compares the listed and the approved definition of a prompt, resource, template or instructions.
type OfferDiff struct {
	Kind        tool.DefinitionKind `json:"kind" doc:"prompt, resource, template or instructions."`
	Server      string              `json:"server"`
	Name        string              `json:"name,omitempty"`
	Status      string              `json:"status,omitempty" words:"shown status" doc:"Why it cannot be used; absent when it can."`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
	Fingerprint string              `json:"fingerprint" doc:"Of the current definition; send it with an approval."`
	Comparison
	ScanResult
}

// ToolDiff compares a tool's listed and approved definition.
type ToolDiff struct {
	Name        string              `json:"name" doc:"The tool id: server:tool."`
	Server      string              `json:"server"`
	Tool        string              `json:"tool"`
	Status      string              `json:"status,omitempty" words:"shown status"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
	Fingerprint string              `json:"fingerprint" doc:"Of the listed definition; send it with an approval."`
	Comparison
	Loosened []string `json:"loosened,omitempty" doc:"The hints that the change loosens."`
	ScanResult
}

// ApprovedView is an approved definition.
type ApprovedView struct {
	Fingerprint string          `json:"fingerprint"`
	Definition  json.RawMessage `json:"definition,omitempty"`
	By          string          `json:"by" doc:"admin, or by which trust it was accepted: trust:scan or trust:auto."`
	At          time.Time       `json:"at"`
}

// Trust is the decisions about a tool, as part of a ToolView.
type Trust struct {
	Fingerprint string              `json:"fingerprint" doc:"Of the definition that the server lists."`
	Approved    string              `json:"approved,omitempty" doc:"The approved fingerprint."`
	ApprovedBy  string              `json:"approved_by,omitempty"`
	ApprovedAt  *time.Time          `json:"approved_at,omitempty"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why it waits; absent when it is approved."`
	OffBy       string              `json:"off_by,omitempty" doc:"The actor that switched the tool off."`
	OffAt       *time.Time          `json:"off_at,omitempty"`
}
