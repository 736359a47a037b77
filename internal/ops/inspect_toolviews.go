package ops

import (
	"encoding/json"
	"time"
)

// ToolQuery selects a page of tools. Empty fields select everything.
type ToolQuery struct {
	ToolFilter
	Detail   string `query:"detail" enum:"slim,full" doc:"slim (default): the fields of a list. full: also the description, schemas, hints and decisions."`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100" doc:"How many tools at most."`
	Offset   int    `query:"offset" min:"0" max:"2147483648" doc:"How many to leave out."`
	Snapshot string `query:"snapshot" doc:"That of an earlier page: then this is a page of the same list, while that is kept. The filters are to be the same."`
}

// Full is the detail of a list with all fields.
const Full = "full"

// ToolFilter selects and sorts tools.
type ToolFilter struct {
	Server    string `query:"server" doc:"Only tools of this server."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools whose call_with is the variant of this operation."`
	CallWith  string `query:"call_with" words:"variant" doc:"Only tools that are called with this variant."`
	Status    string `query:"status" words:"status or callable" doc:"Only tools with this status; callable means none."`
	Hints     string `query:"hints" enum:"said,corrected,guessed" doc:"Only tools of which this says what they do: said: the server; corrected: a hint_override; guessed: neither."`
	Use       string `query:"use" enum:"recent,earlier,never" doc:"Only tools that were called so, by the log: recent: in the last 30 days; earlier: before that."`
	Text      string `query:"q" doc:"Only tools with this text in their name or title; case is ignored."`
	Sort      string `query:"sort" enum:"name,calls,last,tokens" doc:"name; calls: the most called first; last: the last called first; tokens: the largest definition first. As the servers list them when not given."`
	Reverse   bool   `query:"reverse" doc:"The other way round."`
}

// ToolList is a page of tools.
type ToolList struct {
	Tools    []ToolRow  `json:"tools"`
	Total    int        `json:"total"`
	Limit    int        `json:"limit"`
	Offset   int        `json:"offset"`
	Snapshot string     `json:"snapshot,omitempty" doc:"Names the list that this is a page of; absent when it is all of it."`
	Facets   Facets     `json:"facets"`
	Unhinted []Unhinted `json:"unhinted,omitempty" doc:"The servers for which infer_hints: enforce would be good for something, where it is most first."`
}

// Facets count tools by filter value. Each counts the tools that all other filters select.
type Facets struct {
	Lane   map[string]int `json:"lane" doc:"By operation_type; call_with counts as that filter, too."`
	Status map[string]int `json:"status" doc:"callable, and the statuses."`
	Hints  map[string]int `json:"hints" doc:"said, corrected and guessed."`
	Use    map[string]int `json:"use" doc:"recent, earlier and never."`
	Server map[string]int `json:"server"`
}

// ToolRow is a tool in a list.
type ToolRow struct {
	Name       string `json:"name" doc:"The tool id: server:tool."`
	Server     string `json:"server"`
	Tool       string `json:"tool"`
	Title      string `json:"title,omitempty"`
	Summary    string `json:"summary" doc:"The first line of the description, shortened."`
	CallWith   string `json:"call_with" words:"variant"`
	Lane       string `json:"lane" words:"operation" doc:"The operation of call_with."`
	Guessed    bool   `json:"guessed,omitempty" doc:"Neither the server nor an override says so."`
	Status     string `json:"status,omitempty" words:"shown status" doc:"Why the tool cannot be called; absent when it can."`
	Deprecated bool   `json:"deprecated,omitempty"`
	Tokens     int    `json:"tokens" doc:"Estimated size of its definition in tokens: a quarter of its bytes."`
	ToolUsage
	*FullToolFields
}

// ToolUsage says how often and when a tool was called.
type ToolUsage struct {
	Calls    int64      `json:"calls" doc:"How often it was called, as far back as the log goes."`
	LastUsed *time.Time `json:"last_used,omitempty"`
}

// ToolDetail is one tool with the details of its page.
type ToolDetail struct {
	ToolView
	ToolUsage
	Lane          string          `json:"lane" words:"operation" doc:"The operation of call_with."`
	Guessed       bool            `json:"guessed,omitempty" doc:"Neither the server nor an override says so."`
	Corrected     json.RawMessage `json:"corrected_annotations,omitempty" doc:"The hints that hint_overrides say."`
	Signature     string          `json:"signature" doc:"What an agent reads in place of the schema where the detail is compact."`
	Tokens        int             `json:"tokens" doc:"About what it costs an agent that finds it with its schema: a quarter of its bytes in the answer."`
	CompactTokens int             `json:"compact_tokens" doc:"The same with the signature."`
}

// FullToolFields has the fields of detail full.
type FullToolFields struct {
	Description         *string         `json:"description,omitempty"`
	InputSchema         json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitempty"`
	Annotations         json.RawMessage `json:"annotations,omitempty" doc:"The effective hints; only those that are said."`
	DeclaredAnnotations json.RawMessage `json:"declared_annotations,omitempty" doc:"What the server said, where the effective hints differ."`
	InferredOperation   string          `json:"inferred_operation,omitempty" words:"operation" doc:"What a tool without hints seems to do. Absent when it says so itself, or infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"Why it seems so."`
	Trust               *Trust          `json:"trust,omitempty" doc:"What is decided about the tool."`
}

// ToToolView converts a row of a full list to a ToolView.
func (r *ToolRow) ToToolView() ToolView {
	v := ToolView{Name: r.Name, Server: r.Server, Tool: r.Tool, Title: r.Title, CallWith: r.CallWith, Status: r.Status, Deprecated: r.Deprecated}
	if m := r.FullToolFields; m != nil {
		v.InputSchema, v.OutputSchema, v.Annotations, v.DeclaredAnnotations = m.InputSchema, m.OutputSchema, m.Annotations, m.DeclaredAnnotations
		v.InferredOperation, v.InferredReason, v.Trust = m.InferredOperation, m.InferredReason, m.Trust
		if m.Description != nil {
			v.Description = *m.Description
		}
	}
	return v
}
