package ops

import (
	"context"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
)

// ActivityList is a page of the log.
type ActivityList struct {
	Activities []activity.Record `json:"activities"`
	Total      int64             `json:"total" doc:"How many records the filters select."`
	Relation   string            `json:"total_relation" enum:"eq,gte" doc:"eq: total is exact; gte: there are at least so many, as the newest records are missing."`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
	NextCursor string            `json:"next_cursor" doc:"Give it as cursor for the next page; empty on the last one."`
	Incomplete bool              `json:"incomplete,omitempty" doc:"The newest records are missing: the database cannot take them at this time, see status."`
}

// Activities returns the records that a filter selects, newest first.
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

// Activity returns one record by its id or a unique prefix of it.
func (g *Gateway) Activity(ctx context.Context, _ Caller, in RecordRef) (activity.Record, error) {
	r, err := g.Log.Get(ctx, in.ID)
	fillMissingIntentOperation(&r)
	return r, err
}

// fillMissingIntentOperation sets the operation type of a record without an intent from its variant.
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
