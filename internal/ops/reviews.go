package ops

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
)

// Removed is the result of removing a server.
type Removed struct {
	Removed string `json:"removed" doc:"The name of the removed server."`
}

// Waiting lists all servers and definitions that wait for a user's approval.
type Waiting struct {
	Servers []WaitingServer `json:"servers"`
	Tools   []WaitingTool   `json:"tools" doc:"The waiting tools of servers that are not quarantined: one page. The tools of a quarantined server are part of its review."`
	// TotalTools is the number of waiting tools on all pages.
	TotalTools int            `json:"total_tools"`
	Offers     []WaitingOffer `json:"offers" doc:"The waiting prompts, resources, templates and instructions: one page."`
	// TotalOffers is the number of waiting primitives on all pages.
	TotalOffers int `json:"total_offers"`
	WaitingTotals
	// Forgotten is absent if no approvals were lost.
	Forgotten []Forgotten `json:"forgotten,omitempty" doc:"Servers whose approvals were lost with an earlier database. One approval of such a server covers all its listed definitions."`
	Warnings  []string    `json:"warnings,omitempty" doc:"Explains why many items wait, if the cause is not an action of a user."`
}

// WaitingTotals counts the waiting definitions on all pages.
type WaitingTotals struct {
	TotalBlocked  int `json:"total_blocked" doc:"The number of blocked tools and other definitions. The totals include them."`
	TotalFindings int `json:"total_findings" doc:"The number of tools and other definitions that have findings and are not blocked."`
	TotalPoisoned int `json:"total_poisoned" doc:"The number of definitions in total_findings whose verdict is block."`
}

// addDefinition adds a waiting definition to the counts.
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

// Forgotten is a server whose approvals were lost and that was not approved since.
type Forgotten struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools" doc:"The number of its tools that wait."`
	Offers int    `json:"offers" doc:"The number of its prompts, resources, templates and instructions that wait."`
}

// WaitingServer is a server that waits for review.
type WaitingServer struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage" enum:"launch,definitions" doc:"The stage of the review. launch: the server starts only after its launch is approved. definitions: the server runs for the review only."`
	Fingerprint string      `json:"fingerprint" doc:"The fingerprint to send with an approval."`
	ProposedBy  string      `json:"proposed_by,omitempty"`
	ProposedAt  *time.Time  `json:"proposed_at,omitempty"`
	ClientName  string      `json:"client_name,omitempty" doc:"The self-reported name of the client that proposed the server. Absent if no client did."`
	SessionID   string      `json:"session_id,omitempty" doc:"The id of the session in which a client proposed the server. Absent if no client did."`
	Since       *time.Time  `json:"since,omitempty" doc:"The time at which this stage began. Absent if unknown."`
	Launch      LaunchView  `json:"launch"`
	ToolCount   int         `json:"tool_count"`
	OfferCount  int         `json:"offer_count" doc:"The number of its prompts, resources, templates and instructions."`
	Findings    int         `json:"findings" doc:"The number of scanner findings in its definitions and instructions."`
}

// PendingInfo contains the reason why a definition waits for approval and the values that an approval requires.
type PendingInfo struct {
	Reason      approval.WaitReason `json:"reason" doc:"The reason: new, changed or blocked."`
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint to send with an approval."`
	Approved    string              `json:"approved,omitempty" doc:"The fingerprint of the approved definition. Absent if none was approved."`
	Since       *time.Time          `json:"since,omitempty" doc:"The time at which it began to wait. Absent if unknown."`
	Together    bool                `json:"together,omitempty" doc:"Whether it can be approved in a batch: it has no findings, relaxes no hint, was never blocked, and its approved definition is known."`
}

// ScanResult is the scanner's result for a definition.
type ScanResult struct {
	Verdict  scan.Verdict   `json:"verdict"`
	Findings []scan.Finding `json:"findings"`
}

// WaitingOffer is a prompt, resource, template or instructions that waits for approval.
type WaitingOffer struct {
	Kind   tool.DefinitionKind `json:"kind" doc:"The kind: prompt, resource, template or instructions."`
	Server string              `json:"server"`
	Name   string              `json:"name,omitempty" doc:"The name of the prompt, the address of the resource, or the template. Absent for instructions."`
	PendingInfo
	ScanResult
}

// WaitingTool is a tool that waits for approval.
type WaitingTool struct {
	Name   string `json:"name" doc:"The tool id: server:tool."`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	PendingInfo
	Loosened []string                `json:"loosened,omitempty" doc:"The hints with which the change claims less harmful effects."`
	Lane     string                  `json:"lane" words:"operation" doc:"The operation type of the tool after an approval, according to its call_with."`
	Guessed  bool                    `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	What     *approval.ChangeSummary `json:"what,omitempty" doc:"A summary of the changes. Absent if there is no approved definition to compare with."`
	ScanResult
}

// BatchDecision is the result of one decision of a batch.
type BatchDecision struct {
	Name    string
	Problem error // nil if the decision succeeded
}

// ReviewStage is the stage of a server's review.
type ReviewStage string

// The stages of a review.
const (
	StageLaunch      ReviewStage = "launch"      // the launch waits for approval; the server is not started
	StageDefinitions ReviewStage = "definitions" // the definitions wait for approval; the server runs only for the review
	StageApproved    ReviewStage = "approved"    // not quarantined, but single definitions may wait
)

// LaunchView describes how a server is started or reached. A user approves it before the definitions. Secrets are
// masked after the approval.
type LaunchView struct {
	Protocol   string   `json:"protocol"`
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Env        []string `json:"env,omitempty" doc:"The names of the environment variables."`
	WorkingDir string   `json:"working_dir,omitempty"`
	URL        string   `json:"url,omitempty"`
	Headers    []string `json:"headers,omitempty" doc:"The names of the HTTP headers."`
	Pin        string   `json:"pin,omitempty" doc:"The exact version and integrity of the package that the command starts: npm:NAME@VERSION#INTEGRITY, pypi:… or docker:…. Absent if the command chooses the version."`
	Sandbox    string   `json:"sandbox,omitempty" doc:"What the process may read, write and reach, in words. Absent if it has no sandbox."`
}

func newLaunchView(l config.LaunchView) LaunchView {
	v := LaunchView{Protocol: l.Protocol, Command: l.Command, Args: l.Args, Env: l.Env, WorkingDir: l.WorkingDir, URL: l.URL, Headers: l.Headers, Pin: l.Pin}
	if l.Sandbox != nil {
		v.Sandbox = l.Sandbox.Text()
	}
	return v
}

// ServerReview contains the information that a user reviews before approving a server.
type ServerReview struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage" enum:"launch,definitions,approved"`
	Notice      string      `json:"notice,omitempty" doc:"A warning: earlier blocks may be lost; or, after the approval of a launch, why its version is not pinned."`
	Fingerprint string      `json:"fingerprint" doc:"The fingerprint to send with the approval of this stage. It covers the launch and, in the stage definitions, all shown definitions and instructions."`
	Launch      LaunchView  `json:"launch"`
	ProposedBy  string      `json:"proposed_by,omitempty"`
	ProposedAt  *time.Time  `json:"proposed_at,omitempty"`
	// ProposedEnv includes values, because they can change the behavior of the command.
	ProposedEnv map[string]string `json:"proposed_env,omitempty" doc:"The proposed environment variables with their values. Absent once the launch is approved."`
	// LaunchApprovedBy and LaunchApprovedAt are set if the launch is approved.
	LaunchApprovedBy string         `json:"launch_approved_by,omitempty"`
	LaunchApprovedAt *time.Time     `json:"launch_approved_at,omitempty"`
	State            string         `json:"state"`
	LastError        string         `json:"last_error,omitempty"`
	Listed           bool           `json:"listed" doc:"Whether the server has listed its tools. The definitions cannot be approved before that."`
	Instructions     string         `json:"instructions,omitempty" doc:"The unchanged instructions of the server for clients. Absent if there are none."`
	Verdict          scan.Verdict   `json:"verdict" doc:"The scanner's verdict for the instructions."`
	Findings         []scan.Finding `json:"findings" doc:"The scanner's findings in the instructions."`
	Tools            []ReviewedTool `json:"tools"`
	// Offers lists at most 5,000 primitives, with the waiting ones first.
	Offers      []ReviewedOffer `json:"offers" doc:"Prompts, resources, templates and instructions, waiting ones first. At most 5,000. An approval covers only those that are shown."`
	TotalOffers int             `json:"total_offers"`
}

// ApprovalStatus is the approval status of a definition under review.
type ApprovalStatus struct {
	Fingerprint string              `json:"fingerprint"`
	Status      string              `json:"status,omitempty" words:"shown status"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why the definition waits: new, changed or blocked. Absent if it is approved."`
}

// ReviewedOffer is a prompt, resource, template or instructions of a server under review.
type ReviewedOffer struct {
	Kind tool.DefinitionKind `json:"kind" doc:"The kind: prompt, resource, template or instructions."`
	Name string              `json:"name,omitempty"`
	ApprovalStatus
	ForClients bool            `json:"for_clients,omitempty" doc:"Whether the server listed the definition only to clients, not to MCPProxy."`
	Definition json.RawMessage `json:"definition" doc:"The unchanged definition from the server. For instructions: their text."`
	// Changes is set for the first 100 changed definitions.
	Changes []approval.Difference `json:"changes,omitempty" doc:"The differences from the approved definition."`
	ScanResult
}

// ReviewedTool is a tool of a server under review.
type ReviewedTool struct {
	Tool string `json:"tool"`
	ApprovalStatus
	Definition json.RawMessage `json:"definition" doc:"The unchanged definition from the server."`
	// Changes is set for the first 100 changed definitions.
	Changes []approval.Difference `json:"changes,omitempty" doc:"The differences from the approved definition."`
	ScanResult
}

// Comparison contains a definition, the approved definition and their differences. Changes is never null in JSON.
type Comparison struct {
	Approved   *ApprovedView         `json:"approved,omitempty" doc:"The approved definition. Absent if none was approved, or if its text was lost."`
	Definition json.RawMessage       `json:"definition"`
	Changes    []approval.Difference `json:"changes" doc:"The differences from the approved definition, by member. Empty if there are none."`
	Truncated  bool                  `json:"truncated,omitempty" doc:"Whether changes were left out or shortened."`
}

// OfferDiff compares the listed and the approved definition of a prompt, resource, template or instructions.
type OfferDiff struct {
	Kind        tool.DefinitionKind `json:"kind" doc:"The kind: prompt, resource, template or instructions."`
	Server      string              `json:"server"`
	Name        string              `json:"name,omitempty"`
	Status      string              `json:"status,omitempty" words:"shown status" doc:"Why the definition cannot be used. Absent if it can."`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why the definition waits: new, changed or blocked. Absent if it is approved."`
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint of the current definition, to send with an approval."`
	Comparison
	ScanResult
}

// ToolDiff compares the listed and the approved definition of a tool.
type ToolDiff struct {
	Name        string              `json:"name" doc:"The tool id: server:tool."`
	Server      string              `json:"server"`
	Tool        string              `json:"tool"`
	Status      string              `json:"status,omitempty" words:"shown status"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why the definition waits: new, changed or blocked. Absent if it is approved."`
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint of the current definition, to send with an approval."`
	Comparison
	Loosened []string `json:"loosened,omitempty" doc:"The hints with which the change claims less harmful effects."`
	ScanResult
}

// ApprovedView is an approved definition.
type ApprovedView struct {
	Fingerprint string          `json:"fingerprint"`
	Definition  json.RawMessage `json:"definition,omitempty"`
	By          string          `json:"by" doc:"The approver: admin for a user, or trust:scan or trust:auto if the server's trust setting accepted the definition automatically."`
	At          time.Time       `json:"at"`
}

// Trust contains the decisions about a tool, as part of a ToolView.
type Trust struct {
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint of the current definition."`
	Approved    string              `json:"approved,omitempty" doc:"The fingerprint of the approved definition. Absent if none was approved."`
	ApprovedBy  string              `json:"approved_by,omitempty"`
	ApprovedAt  *time.Time          `json:"approved_at,omitempty"`
	Reason      approval.WaitReason `json:"reason,omitempty" doc:"Why the tool waits for approval. Absent if it is approved."`
	OffBy       string              `json:"off_by,omitempty" doc:"The actor that disabled the tool. Absent if the tool is enabled."`
	OffAt       *time.Time          `json:"off_at,omitempty"`
}
