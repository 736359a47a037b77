package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/store/activity"
)

// SummaryQuery asks what calls came to.
type SummaryQuery struct {
	activity.Filter
	Period string         `query:"period" doc:"How far back from end_time, or from now: 90s, 30m, 24h, 7d, 2w. 24h when it and start_time are left out."`
	Step   string         `query:"step" doc:"The length of a bucket, such as 30m; at most 400 of them. A fitting one when it is left out."`
	Group  activity.Group `query:"group" doc:"What to count by, besides."`
}

// Summary is what calls came to in a time.
type Summary struct {
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	StepSeconds int64     `json:"step_seconds"`
	activity.Summary
	Last *time.Time `json:"last,omitempty" doc:"The last call that the filters select, also when it was before since."`
}

// The bounds of the number of buckets: when it is asked for, and else.
const (
	maxBuckets = 400
	buckets    = 60
)

// steps are the lengths of buckets that are chosen from; then whole days.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, historyDay,
}

// Summary counts the calls of a time, in buckets that begin at round times.
func (h *History) Summary(ctx context.Context, _ Caller, in SummaryQuery) (Summary, error) {
	f, err := in.times(h.now())
	if err != nil {
		return Summary{}, err
	}
	step, err := in.step(f.Since, f.Until)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Since: f.Since.UTC(), Until: f.Until.UTC(), StepSeconds: int64(step / time.Second)}
	s.Summary, err = h.log.Summary(ctx, activity.SummaryQuery{Filter: f, Step: step, Group: in.Group, Most: most})
	if err != nil || len(f.Types) > 0 && !slices.Contains(f.Types, activity.ToolCall) {
		return s, err
	}
	f.Since, f.Types, f.Limit = time.Time{}, []activity.Type{activity.ToolCall}, 1
	newest, err := h.log.List(ctx, f)
	if len(newest.Records) > 0 {
		s.Last = &newest.Records[0].Timestamp
	}
	return s, err
}

// times returns the filter with the time that is meant.
func (in *SummaryQuery) times(now time.Time) (activity.Filter, error) {
	f := in.Filter
	if f.Until.IsZero() {
		f.Until = now
	}
	if !f.Since.IsZero() && in.Period != "" {
		return f, invalid("period", in.Period, "left out when start_time is given")
	}
	period, err := span("period", in.Period, historyDay)
	if err != nil {
		return f, err
	}
	if f.Since.IsZero() {
		f.Since = f.Until.Add(-period)
	}
	if f.Since.Unix() < 0 || !f.Since.Before(f.Until) {
		return f, invalid("start_time", f.Since.Format(time.RFC3339), "a time after 1970 and before end_time (or now)")
	}
	return f, nil
}

// step returns the length of a bucket.
func (in *SummaryQuery) step(since, until time.Time) (time.Duration, error) {
	if in.Step == "" {
		for _, step := range steps {
			if countCalls(since, until, step) <= buckets {
				return step, nil
			}
		}
		return time.Duration((until.Unix()-since.Unix())/int64(buckets*historyDay/time.Second)+1) * historyDay, nil
	}
	step, err := span("step", in.Step, 0)
	if err == nil && countCalls(since, until, step) > maxBuckets {
		least := time.Duration((until.Unix()-since.Unix())/(maxBuckets-2)+1) * time.Second
		return 0, invalid("step", in.Step, fmt.Sprintf("at least %ds for this time: there are at most %d buckets", least/time.Second, maxBuckets)).
			WithHint("Leave step out for a fitting one.")
	}
	return step, err
}

// countCalls is how many buckets a time takes.
func countCalls(since, until time.Time, step time.Duration) int64 {
	s := int64(step / time.Second)
	return (until.Unix()+s)/s - since.Unix()/s
}
