package store

import (
	"math/bits"
	"time"

	"mcpproxy/internal/store/activity"
)

// rollUp adds up what a transaction changes in the roll-up.
type rollUp struct {
	hours map[hour]counts
	took  map[took]int64
}

type hour struct {
	hour                               int64
	kind, server, tool, intent, status string
}

type counts struct{ records, duration, longest, last int64 }

// took is a bucket of durations.
type took struct {
	hour   int64
	server string
	bucket int64
}

const microsecondsPerHour = 3600 * 1e6

// hourOf returns the hour of a time in microseconds, both since 1970.
func hourOf(t int64) int64 { return t / microsecondsPerHour }

func (r *rollUp) add(f *activity.RecordFacts) {
	kind := string(f.Type)
	if f.Status == activity.Held { // nothing was called: if it is, that is another record
		kind = string(activity.Held)
	}
	k := hour{hourOf(f.Time), kind, f.Server, f.Tool, f.Intent, string(f.Status)}
	c := r.hours[k]
	r.hours[k] = counts{c.records + 1, c.duration + f.Duration, max(c.longest, f.Duration), max(c.last, f.Time)}
	if kind == string(activity.ToolCall) {
		r.took[took{k.hour, k.server, bucketOf(f.Duration)}]++
	}
}

func (r *rollUp) save(c *rawConn) {
	for k, n := range r.hours {
		c.do(`INSERT INTO activity_hour (hour, type, server, tool, intent, status, records, duration, max_duration, last)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET records = records + excluded.records, duration = duration + excluded.duration,
			max_duration = max(max_duration, excluded.max_duration), last = max(last, excluded.last)`,
			k.hour, k.kind, k.server, k.tool, k.intent, k.status, n.records, n.duration, n.longest, n.last)
	}
	for k, n := range r.took {
		c.do(`INSERT INTO activity_took (hour, server, bucket, records) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET records = records + excluded.records`, k.hour, k.server, k.bucket, n)
	}
}

// Durations below 32 ms have a bucket each; above, each doubling has 16.
const fineBuckets = 32

func bucketOf(milliseconds int64) int64 {
	d := uint64(max(0, milliseconds))
	if d < fineBuckets {
		return int64(d)
	}
	shift := bits.Len64(d) - 5
	return int64(16*shift) + int64(d>>shift)
}

// middle returns the duration in the middle of a bucket, in milliseconds.
func middle(bucket int64) int64 {
	if bucket < fineBuckets {
		return bucket
	}
	shift := bucket/16 - 1
	return (bucket%16+16)<<shift + 1<<shift/2
}

// toolUse is how often tools were called.
type toolUse map[[2]string]activity.ToolUsage // by server and tool

func (u toolUse) add(k hour, records, last int64) {
	if k.kind != string(activity.ToolCall) {
		return
	}
	if last == 0 { // from before it was kept
		last = k.hour * microsecondsPerHour
	}
	id := [2]string{k.server, k.tool}
	was, at := u[id], time.UnixMicro(last).UTC()
	if was.Last.After(at) {
		at = was.Last
	}
	u[id] = activity.ToolUsage{Calls: was.Calls + records, Last: at}
}
