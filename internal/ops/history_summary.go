package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/store/activity"
)

// SummaryQuery selects the calls to summarize.
type SummaryQuery struct {
	activity.Filter
	Period string           `query:"period" doc:"The length of the period that ends at end_time or now, such as 90s, 30m, 24h, 7d or 2w. Default: 24h, unless start_time is set."`
	Step   string           `query:"step" doc:"The length of a bucket, such as 30m. There can be at most 400 buckets. Default: chosen from the length of the period."`
	Group  activity.GroupBy `query:"group" doc:"The field by which calls are grouped, in addition to time."`
}

// Summary summarizes the calls of a period.
type Summary struct {
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	StepSeconds int64     `json:"step_seconds"`
	activity.Summary
	Last *time.Time `json:"last,omitempty" doc:"The time of the last call that matches the filters, even if it was before since. Absent if there is none."`
}

// The maximum number of buckets if the client sets the step, and if it does not.
const (
	maxBuckets     = 400
	defaultBuckets = 60
)

// bucketLengths are the lengths of buckets if the client sets no step. Longer buckets are whole days.
var bucketLengths = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, historyDay,
}

// Summary summarizes the calls of a period in buckets. Buckets start at multiples of their length.
func (h *ActivityHistory) Summary(ctx context.Context, _ Caller, in SummaryQuery) (Summary, error) {
	f, err := in.toFilter(h.now())
	if err != nil {
		return Summary{}, err
	}
	step, err := in.chooseBucketLength(f.Since, f.Until)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Since: f.Since.UTC(), Until: f.Until.UTC(), StepSeconds: int64(step / time.Second)}
	s.Summary, err = h.log.Summary(ctx, activity.SummaryQuery{Filter: f, Step: step, Group: in.Group, Most: maxCountedRecords})
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

// toFilter returns the filter with its start and end set.
func (in *SummaryQuery) toFilter(now time.Time) (activity.Filter, error) {
	f := in.Filter
	if f.Until.IsZero() {
		f.Until = now
	}
	if !f.Since.IsZero() && in.Period != "" {
		return f, invalidValueError("period", in.Period, "absent if start_time is set")
	}
	period, err := parsePeriod("period", in.Period, historyDay)
	if err != nil {
		return f, err
	}
	if f.Since.IsZero() {
		f.Since = f.Until.Add(-period)
	}
	if f.Since.Unix() < 0 || !f.Since.Before(f.Until) {
		return f, invalidValueError("start_time", f.Since.Format(time.RFC3339), "a time after 1970 and before end_time (or now)")
	}
	return f, nil
}

// chooseBucketLength returns the length of a bucket.
func (in *SummaryQuery) chooseBucketLength(since, until time.Time) (time.Duration, error) {
	if in.Step == "" {
		for _, step := range bucketLengths {
			if bucketCount(since, until, step) <= defaultBuckets {
				return step, nil
			}
		}
		return time.Duration((until.Unix()-since.Unix())/int64(defaultBuckets*historyDay/time.Second)+1) * historyDay, nil
	}
	step, err := parsePeriod("step", in.Step, 0)
	if err == nil && bucketCount(since, until, step) > maxBuckets {
		least := time.Duration((until.Unix()-since.Unix())/(maxBuckets-2)+1) * time.Second
		return 0, invalidValueError("step", in.Step, fmt.Sprintf("at least %ds for this period, because there can be at most %d buckets", least/time.Second, maxBuckets)).
			WithHint("Leave step out to use a suitable value.")
	}
	return step, err
}

// bucketCount returns the number of buckets for a period.
func bucketCount(since, until time.Time, step time.Duration) int64 {
	s := int64(step / time.Second)
	return (until.Unix()+s)/s - since.Unix()/s
}
