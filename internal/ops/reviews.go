package ops

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// Removed is the answer to a removal.
type Removed struct {
	Removed string `json:"removed" doc:"The name of the server that is gone."`
}

// Waiting is everything that waits for a person.
type Waiting struct {
	Servers []WaitingServer `json:"servers"`
	Tools   []WaitingTool   `json:"tools" doc:"Of servers that are not quarantined, a page of them; the tools of the others are part of the server's review."`
	// TotalTools counts those that are left out, too.
	TotalTools int            `json:"total_tools"`
	Offers     []WaitingOffer `json:"offers" doc:"Prompts, resources, templates and instructions, as tools: a page of them."`
	// TotalOffers counts those that are left out, too.
	TotalOffers int `json:"total_offers"`
	WaitingTotals
	// Forgotten is absent where no approvals were lost.
	Forgotten []Forgotten `json:"forgotten,omitempty" doc:"Servers whose approvals were lost with an earlier database: one approval of such a server is for all that is listed of it."`
	Warnings  []string    `json:"warnings,omitempty" doc:"Why so much waits, where that is no person's decision."`
}

// WaitingTotals counts all definitions, also those that a page leaves out.
type WaitingTotals struct {
	TotalBlocked  int `json:"total_blocked" doc:"Tools and offers that a user has blocked; they are among the totals, and wait for no one."`
	TotalFindings int `json:"total_findings" doc:"Tools and offers with a finding that a user has not blocked."`
	TotalPoisoned int `json:"total_poisoned" doc:"Those of total_findings that look poisoned: their verdict is block."`
}

// Count counts a definition.
func (w *WaitingTotals) Count(reason approval.Why, s Scanned) {
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

// Forgotten is a server whose approvals were lost, and that no person has
// approved since.
type Forgotten struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools" doc:"How many of its tools wait."`
	Offers int    `json:"offers" doc:"How many of its prompts, resources, templates and instructions wait."`
}

// WaitingServer is a server that waits for review.
type WaitingServer struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage" enum:"launch,definitions" doc:"launch: nothing is started before it is approved. definitions: it runs for the review only."`
	Fingerprint string      `json:"fingerprint" doc:"What an approval has to name."`
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

// Pending is why a definition waits, and what an approval of it has to name.
type Pending struct {
	Reason      approval.Why `json:"reason" doc:"new, changed or blocked."`
	Fingerprint string       `json:"fingerprint" doc:"What an approval has to name."`
	Approved    string       `json:"approved,omitempty" doc:"The fingerprint that is approved, when the definition changed."`
	Since       *time.Time   `json:"since,omitempty" doc:"Since when it waits; absent when that is not known."`
	Together    bool         `json:"together,omitempty" doc:"It may be approved together with others: it is clean, loosens no hint, nobody has refused it, and what was approved before is known."`
}

// Scanned is what the scanner says of a definition.
type Scanned struct {
	Verdict  scan.Verdict   `json:"verdict"`
	Findings []scan.Finding `json:"findings"`
}

// WaitingOffer is a prompt, a resource, a template, or a server's instructions,
// whose definition nobody has approved.
type WaitingOffer struct {
	Kind   tool.Kind `json:"kind" doc:"prompt, resource, template or instructions."`
	Server string    `json:"server"`
	Name   string    `json:"name,omitempty" doc:"The name of the prompt, the address of the resource, the template. Instructions have none."`
	Pending
	Scanned
}

// WaitingTool is a tool whose definition nobody has approved.
type WaitingTool struct {
	Name   string `json:"name" doc:"The tool id: server:tool."`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Pending
	Loosened []string                `json:"loosened,omitempty" doc:"The hints that the change loosens."`
	Lane     string                  `json:"lane" words:"operation" doc:"What it counts as once it is approved: the operation of its call_with."`
	Guessed  bool                    `json:"guessed,omitempty" doc:"Neither the server nor an override says what the tool does."`
	What     *approval.ChangeSummary `json:"what,omitempty" doc:"What has changed; absent when there is nothing to hold it against."`
	Scanned
}

// DecidedTool is what became of one of many decisions.
type DecidedTool struct {
	Name    string
	Problem error // why it was not made; nil when it was
}

// ReviewStage is how far the review of a server is.
type ReviewStage string

// The stages.
const (
	StageLaunch      ReviewStage = "launch"      // how it is launched waits: it is neither started nor contacted
	StageDefinitions ReviewStage = "definitions" // it runs for the review only; its definitions wait
	StageApproved    ReviewStage = "approved"    // it is not quarantined; single tools may wait
)

// Words are all stages.
func (ReviewStage) Words() []string {
	return []string{string(StageLaunch), string(StageDefinitions), string(StageApproved)}
}

// LaunchView is how a server is launched or reached: what a person approves
// before it is started or contacted. Secrets are masked once it is approved.
type LaunchView struct {
	Protocol   string   `json:"protocol"`
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Env        []string `json:"env,omitempty" doc:"The names of the environment variables."`
	WorkingDir string   `json:"working_dir,omitempty"`
	URL        string   `json:"url,omitempty"`
	Headers    []string `json:"headers,omitempty" doc:"The names of the headers."`
}

// ServerReview is what a person looks at before approving a server.
type ServerReview struct {
	Name        string      `json:"name"`
	Stage       ReviewStage `json:"stage"`
	Notice      string      `json:"notice,omitempty" doc:"What a person should know before deciding: that earlier refusals may be lost."`
	Fingerprint string      `json:"fingerprint" doc:"What the approval of this stage has to name: that of the launch, or that of the launch and all definitions and instructions shown."`
	Launch      LaunchView  `json:"launch"`
	ProposedBy  string      `json:"proposed_by,omitempty"`
	ProposedAt  *time.Time  `json:"proposed_at,omitempty"`
	// ProposedEnv has values too: whoever proposed them may make the command do
	// something else with them.
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
	// Offers are what waits first, then the others, at most 5,000 in all.
	Offers      []ReviewedOffer `json:"offers" doc:"Prompts, resources, templates and instructions: those that wait first. At most 5,000; an approval is about those that are shown."`
	TotalOffers int             `json:"total_offers"`
}

// Standing is how a definition stands that a review shows.
type Standing struct {
	Fingerprint string       `json:"fingerprint"`
	Status      string       `json:"status,omitempty" words:"shown status"`
	Reason      approval.Why `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
}

// ReviewedOffer is one definition of a server under review that is not a tool's.
type ReviewedOffer struct {
	Kind tool.Kind `json:"kind" doc:"prompt, resource, template or instructions."`
	Name string    `json:"name,omitempty"`
	Standing
	ForClients bool            `json:"for_clients,omitempty" doc:"The server has listed it to clients, not to MCPProxy."`
	Definition json.RawMessage `json:"definition" doc:"As the server sent it; of instructions the text."`
	// Changes are those of the first 100 that have changed.
	Changes []approval.Difference `json:"changes,omitempty" doc:"How it differs from the approved definition."`
	Scanned
}

// ReviewedTool is one definition of a server under review.
type ReviewedTool struct {
	Tool string `json:"tool"`
	Standing
	Definition json.RawMessage `json:"definition" doc:"The whole definition as the server sent it."`
	Scanned
}

// Compared is a definition beside the approved one. Changes are never null in
// JSON.
type Compared struct {
	Approved   *ApprovedView         `json:"approved,omitempty" doc:"Absent when none was approved, or when its text is lost."`
	Definition json.RawMessage       `json:"definition"`
	Changes    []approval.Difference `json:"changes" doc:"Member by member; empty when nothing changed."`
	Truncated  bool                  `json:"truncated,omitempty" doc:"There are more changes, or longer ones, than are shown."`
}

// OfferDiff is the approved definition of a prompt, a resource, a template or of
// instructions beside the one that the server has now.
type OfferDiff struct {
	Kind        tool.Kind    `json:"kind" doc:"prompt, resource, template or instructions."`
	Server      string       `json:"server"`
	Name        string       `json:"name,omitempty"`
	Status      string       `json:"status,omitempty" words:"shown status" doc:"Why it cannot be used; absent when it can."`
	Reason      approval.Why `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
	Fingerprint string       `json:"fingerprint" doc:"Of the definition that the server has now; what an approval has to name."`
	Compared
	Scanned
}

// ToolDiff is a tool's approved definition beside the one that the server
// lists now.
type ToolDiff struct {
	Name        string       `json:"name" doc:"The tool id: server:tool."`
	Server      string       `json:"server"`
	Tool        string       `json:"tool"`
	Status      string       `json:"status,omitempty" words:"shown status"`
	Reason      approval.Why `json:"reason,omitempty" doc:"Why it waits: new, changed or blocked; absent when it is approved."`
	Fingerprint string       `json:"fingerprint" doc:"Of the definition that the server lists; what an approval has to name."`
	Compared
	Loosened []string `json:"loosened,omitempty" doc:"The hints that the change loosens."`
	Scanned
}

// ApprovedView is a definition that was approved.
type ApprovedView struct {
	Fingerprint string          `json:"fingerprint"`
	Definition  json.RawMessage `json:"definition,omitempty"`
	By          string          `json:"by" doc:"admin, or by which trust it was accepted: trust:scan or trust:auto."`
	At          time.Time       `json:"at"`
}

// Trust is what is decided about a tool, as part of a ToolView.
type Trust struct {
	Fingerprint string       `json:"fingerprint" doc:"Of the definition that the server lists."`
	Approved    string       `json:"approved,omitempty" doc:"The approved fingerprint."`
	ApprovedBy  string       `json:"approved_by,omitempty"`
	ApprovedAt  *time.Time   `json:"approved_at,omitempty"`
	Reason      approval.Why `json:"reason,omitempty" doc:"Why it waits; absent when it is approved."`
	OffBy       string       `json:"off_by,omitempty" doc:"Who switched the tool off."`
	OffAt       *time.Time   `json:"off_at,omitempty"`
}
