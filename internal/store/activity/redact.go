package activity

import (
	"context"
	"slices"

	"mcpproxy/internal/problem"
)

// EraseFields permanently erases fields of a record: the values, their entries in the search index, and their copies in
// the files of the log. by describes the actor. The erasure is recorded first. EraseFields may return the problems
// NOT_FOUND, AMBIGUOUS, INVALID_PARAMETER and CONFLICT.
func (l *Log) EraseFields(ctx context.Context, by Record, idOrPrefix string, fields []ErasableField) (Record, error) {
	l.redacting.Lock()
	defer l.redacting.Unlock()
	r, err := l.Get(ctx, idOrPrefix)
	if err != nil {
		return r, err
	}
	if r.Status == Pending {
		return r, problem.Newf(problem.Conflict, "The call of record %s is still running.", r.ID).WithHint("Try again when it has ended.")
	}
	stored, err := l.store.GetStoredRecord(ctx, r.ID)
	if err != nil {
		return r, l.toQueryError(ctx, err)
	}
	there, already, old := stored.findErasableFields(fields)
	for _, f := range fields {
		if slices.Contains(there, f) || slices.Contains(already, f) {
			continue
		}
		if old {
			return r, problem.Newf(problem.Conflict, "Record %s was written by an earlier version: its values cannot be erased without breaking the hash chain.", r.ID).
				WithHint("It is deleted after the retention period: see activity_retention_days.")
		}
		return r, problem.Newf(problem.InvalidParameter, "Record %s has no %s.", r.ID, f).With("parameter", "field").With("value", string(f))
	}
	if len(there) == 0 {
		return r, nil
	}
	by.Type, by.Status = System, Success
	by.Metadata = Metadata{Action: "redact", Redacted: &Redacted{r.ID, there}}
	if err := l.Append(&by); err != nil {
		return r, err
	}
	return l.Get(ctx, r.ID) // waits until the fields are erased
}
