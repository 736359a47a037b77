package ops

import (
	"encoding/json"
	"time"
)

// ToolQuery selects a page of tools. Empty fields select everything.
type ToolQuery struct {
	ToolFilter
	Detail   string `query:"detail" enum:"slim,full" doc:"slim (default): the fields of a list. full: also the description, schemas, hints and decisions."`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100" doc:"The maximum number of tools."`
	Offset   int    `query:"offset" min:"0" max:"2147483648" doc:"The number of tools to skip."`
	Snapshot string `query:"snapshot" doc:"The snapshot of an earlier page, to get another page of the same list. Use the same filters. MCPProxy keeps a snapshot only for a limited time."`
}

// Full is the value of ToolQuery.Detail for a list with all fields.
const Full = "full"

// ToolFilter selects and sorts tools.
type ToolFilter struct {
	Server    string `query:"server" doc:"Only tools of this server."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools of this operation type, according to their call_with."`
	CallWith  string `query:"call_with" words:"variant" doc:"Only tools whose call_with is this calling tool."`
	Status    string `query:"status" words:"status or callable" doc:"Only tools with this status. callable: only tools that can be called."`
	Hints     string `query:"hints" enum:"said,corrected,guessed" doc:"Only tools whose hints come from this source. said: the server. corrected: hint_overrides. guessed: neither, so that the hints are inferred."`
	Use       string `query:"use" enum:"recent,earlier,never" doc:"Only tools with this use, according to the activity log. recent: called in the last 30 days. earlier: called before that. never: not called."`
	Text      string `query:"q" doc:"Only tools with this text in their name, alias or title. Case is ignored."`
	Sort      string `query:"sort" enum:"name,calls,last,tokens" doc:"The order. name: alphabetical. calls: most calls first. last: most recent call first. tokens: largest definition first. Default: the order in which the servers list them."`
	Reverse   bool   `query:"reverse" doc:"Whether to reverse the order."`
}

// ToolList is a page of tools.
type ToolList struct {
	Tools    []ToolRow  `json:"tools"`
	Total    int        `json:"total"`
	Limit    int        `json:"limit"`
	Offset   int        `json:"offset"`
	Snapshot string     `json:"snapshot,omitempty" doc:"The snapshot to send for the other pages of this list. Absent if the response contains the whole list."`
	Facets   Facets     `json:"facets"`
	Unhinted []Unhinted `json:"unhinted,omitempty" doc:"The servers for which infer_hints: enforce would let tools run as reads, most such tools first."`
}

// Facets count tools by filter value. Each facet counts the tools that match all other filters.
type Facets struct {
	Lane   map[string]int `json:"lane" doc:"The number of tools by operation type. The filter call_with is treated as a filter by operation type."`
	Status map[string]int `json:"status" doc:"The number of tools by status; callable for tools that can be called."`
	Hints  map[string]int `json:"hints" doc:"The number of tools by the source of their hints: said, corrected and guessed."`
	Use    map[string]int `json:"use" doc:"The number of tools by use: recent, earlier and never."`
	Server map[string]int `json:"server"`
}

// ToolRow is a tool in a list.
type ToolRow struct {
	Name       string `json:"name" doc:"The tool id: server:tool."`
	Server     string `json:"server"`
	Tool       string `json:"tool"`
	Title      string `json:"title,omitempty"`
	Summary    string `json:"summary" doc:"The first line of the description, shortened."`
	Alias      string `json:"alias,omitempty" doc:"The name that agents see instead."`
	Always     bool   `json:"always,omitempty" doc:"Whether each answer of retrieve_tools begins with the tool."`
	CallWith   string `json:"call_with" words:"variant"`
	Lane       string `json:"lane" words:"operation" doc:"The operation type of call_with."`
	Guessed    bool   `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Status     string `json:"status,omitempty" words:"shown status" doc:"Why the tool cannot be called. Absent if it can."`
	Deprecated bool   `json:"deprecated,omitempty"`
	Tokens     int    `json:"tokens" doc:"The estimated size of its definition in tokens (bytes divided by 4)."`
	ToolUsage
	*FullToolFields
}

// ToolUsage contains the number of calls of a tool and the time of the last call.
type ToolUsage struct {
	Calls    int64      `json:"calls" doc:"The number of its calls in the whole activity log."`
	LastUsed *time.Time `json:"last_used,omitempty"`
}

// ToolDetail is one tool with the details for its page in the web UI.
type ToolDetail struct {
	ToolView
	ToolUsage
	Lane          string          `json:"lane" words:"operation" doc:"The operation type of call_with."`
	Guessed       bool            `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Corrected     json.RawMessage `json:"corrected_annotations,omitempty" doc:"The hints that hint_overrides set. Absent if there are none."`
	Signature     string          `json:"signature" doc:"The signature that agents get instead of the schema if the detail is compact."`
	Tokens        int             `json:"tokens" doc:"The estimated size of the tool with its schema in an agent's search result, in tokens (bytes divided by 4)."`
	CompactTokens int             `json:"compact_tokens" doc:"The estimated size with the signature instead of the schema, in tokens."`
}

// FullToolFields contains the additional fields of the detail level full.
type FullToolFields struct {
	Description         *string         `json:"description,omitempty" doc:"The description that agents get."`
	DeclaredDescription string          `json:"declared_description,omitempty" doc:"The server's description. Absent if agents get it unchanged."`
	Settings            *ToolSettings   `json:"settings,omitempty" doc:"The user's settings for the tool. Absent if there are none."`
	ShadowedBy          string          `json:"shadowed_by,omitempty" doc:"The tool of the same server whose alias is the name of this tool."`
	InputSchema         json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitempty"`
	Annotations         json.RawMessage `json:"annotations,omitempty" doc:"The effective hints. Hints that neither the server nor hint_overrides set are absent."`
	DeclaredAnnotations json.RawMessage `json:"declared_annotations,omitempty" doc:"The hints that the server declared. Absent if they are equal to the effective hints."`
	InferredOperation   string          `json:"inferred_operation,omitempty" words:"operation" doc:"The inferred operation type of a tool without hints. Absent if the tool has hints, or if infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"The reason for inferred_operation."`
	Trust               *Trust          `json:"trust,omitempty" doc:"The approval of the tool."`
}

// ToToolView converts a row of a full list to a ToolView.
func (r *ToolRow) ToToolView() ToolView {
	v := ToolView{Name: r.Name, Server: r.Server, Tool: r.Tool, Title: r.Title, CallWith: r.CallWith, Status: r.Status, Deprecated: r.Deprecated}
	if m := r.FullToolFields; m != nil {
		v.InputSchema, v.OutputSchema, v.Annotations, v.DeclaredAnnotations = m.InputSchema, m.OutputSchema, m.Annotations, m.DeclaredAnnotations
		v.DeclaredDescription, v.Settings, v.ShadowedBy = m.DeclaredDescription, m.Settings, m.ShadowedBy
		v.InferredOperation, v.InferredReason, v.Trust = m.InferredOperation, m.InferredReason, m.Trust
		if m.Description != nil {
			v.Description = *m.Description
		}
	}
	return v
}
