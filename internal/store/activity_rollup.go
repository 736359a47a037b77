package store

import (
	"math/bits"
	"time"

	"mcpproxy/internal/store/activity"
)

// hourlyRollUp collects the changes that a transaction makes to the hourly counts.
type hourlyRollUp struct {
	hours     map[hourlyGroupKey]hourlyGroupCounts
	durations map[durationBucketKey]int64
}

// hourlyGroupKey identifies the records of one hour with the same type, server, tool, intent and status.
type hourlyGroupKey struct {
	hour                               int64
	kind, server, tool, intent, status string
}

// hourlyGroupCounts contains the number of these records, the sum and the maximum of their durations, and the time of
// the last one.
type hourlyGroupCounts struct{ records, duration, longest, last int64 }

// durationBucketKey identifies a bucket of durations of one server in one hour.
type durationBucketKey struct {
	hour   int64
	server string
	bucket int64
}

func newHourlyRollUp() hourlyRollUp {
	return hourlyRollUp{map[hourlyGroupKey]hourlyGroupCounts{}, map[durationBucketKey]int64{}}
}

const microsecondsPerHour = 3600 * 1e6

// hourOfMicros converts a time in microseconds to hours, both since 1970.
func hourOfMicros(t int64) int64 { return t / microsecondsPerHour }

func (r *hourlyRollUp) addRecord(f *activity.RecordFacts) {
	kind := string(f.Type)
	if f.Status == activity.Held { // a held call was not made yet; when it is made, it has a separate record
		kind = string(activity.Held)
	}
	k := hourlyGroupKey{hourOfMicros(f.Time), kind, f.Server, f.Tool, f.Intent, string(f.Status)}
	c := r.hours[k]
	r.hours[k] = hourlyGroupCounts{c.records + 1, c.duration + f.Duration, max(c.longest, f.Duration), max(c.last, f.Time)}
	if kind == string(activity.ToolCall) {
		r.durations[durationBucketKey{k.hour, k.server, bucketOfDuration(f.Duration)}]++
	}
}

func (r *hourlyRollUp) save(c *sqliteWriteConn) {
	for k, n := range r.hours {
		c.write(`INSERT INTO activity_hour (hour, type, server, tool, intent, status, records, duration, max_duration, last)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET records = records + excluded.records, duration = duration + excluded.duration,
			max_duration = max(max_duration, excluded.max_duration), last = max(last, excluded.last)`,
			k.hour, k.kind, k.server, k.tool, k.intent, k.status, n.records, n.duration, n.longest, n.last)
	}
	for k, n := range r.durations {
		c.write(`INSERT INTO activity_took (hour, server, bucket, records) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET records = records + excluded.records`, k.hour, k.server, k.bucket, n)
	}
}

// Each duration below 32 ms has a separate bucket. Above, there are 16 buckets for each doubling.
const fineBuckets = 32

func bucketOfDuration(milliseconds int64) int64 {
	d := uint64(max(0, milliseconds))
	if d < fineBuckets {
		return int64(d)
	}
	shift := bits.Len64(d) - 5
	return int64(16*shift) + int64(d>>shift)
}

// bucketMidpoint returns the duration in the middle of a bucket, in milliseconds.
func bucketMidpoint(bucket int64) int64 {
	if bucket < fineBuckets {
		return bucket
	}
	shift := bucket/16 - 1
	return (bucket%16+16)<<shift + 1<<shift/2
}

// toolUseCounts contains the number of calls of each tool, and the time of the last call.
type toolUseCounts map[[2]string]activity.ToolUsage // by server and tool

func (u toolUseCounts) addHour(k hourlyGroupKey, records, last int64) {
	if k.kind != string(activity.ToolCall) {
		return
	}
	if last == 0 { // an older version did not store the time
		last = k.hour * microsecondsPerHour
	}
	id := [2]string{k.server, k.tool}
	was, at := u[id], time.UnixMicro(last).UTC()
	if was.Last.After(at) {
		at = was.Last
	}
	u[id] = activity.ToolUsage{Calls: was.Calls + records, Last: at}
}
