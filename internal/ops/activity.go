package ops

import (
	"context"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
)

// ActivityList is a page of the activity log.
type ActivityList struct {
	Activities []activity.Record `json:"activities"`
	Total      int64             `json:"total" doc:"The number of records that match the filters."`
	Relation   string            `json:"total_relation" enum:"eq,gte" doc:"eq: total is exact. gte: total is a lower bound, because the newest records are missing."`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
	NextCursor string            `json:"next_cursor" doc:"The cursor of the next page. Empty on the last page."`
	Incomplete bool              `json:"incomplete,omitempty" doc:"Whether the newest records are missing because MCPProxy cannot write to the database now. GET /status has details."`
}

// Activities returns the records that match a filter, newest first.
func (g *Gateway) Activities(ctx context.Context, _ Caller, f activity.Filter) (ActivityList, error) {
	found, err := g.Log.List(ctx, f)
	if err != nil {
		return ActivityList{}, err
	}
	for i := range found.Records {
		fillMissingIntentOperation(&found.Records[i])
	}
	relation := "eq"
	if found.Incomplete {
		relation = "gte"
	}
	return ActivityList{found.Records, found.Total, relation, f.Limit, f.Offset, found.NextCursor, found.Incomplete}, nil
}

// Activity returns the record with the given ID or unique prefix of an ID.
func (g *Gateway) Activity(ctx context.Context, _ Caller, in RecordRef) (activity.Record, error) {
	r, err := g.Log.Get(ctx, in.ID)
	fillMissingIntentOperation(&r)
	return r, err
}

// fillMissingIntentOperation derives the operation type of a record without an intent from its call_tool variant.
func fillMissingIntentOperation(r *activity.Record) {
	variant, ok := policy.ParseCallToolName(r.Metadata.ToolVariant)
	if !ok || r.Metadata.Intent != nil && r.Metadata.Intent.OperationType != "" {
		return
	}
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	intent.OperationType = variant.Operation().String()
	r.Metadata.Intent = &intent
}
