package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/problem"
)

// Asks has what people are asked about, and the leases, in a database of either kind.
// What it stores survives a loss of power, too: an approval that was used is never
// good again.
type Asks struct {
	write func(ctx context.Context, fn func(t transaction) error) error
	read  func(ctx context.Context, fn func(t transaction) error) error
}

// transaction runs statements, in which ? stands for a value: an int64, a string or a
// []byte. Rows are read into those.
type transaction interface {
	each(ctx context.Context, to into, fn func() error, query string, values ...any) error
	do(ctx context.Context, query string, values ...any) error
	// alone has it that no other transaction that is alone runs at a time, and tell has
	// other instances told.
	alone(ctx context.Context) error
	tell(ctx context.Context) error
}

// Asks are those in the file.
func (db *DB) Asks() *Asks {
	return &Asks{
		write: func(ctx context.Context, fn func(transaction) error) error {
			return durably(ctx, db, func(c *rawConn) error { return fn(fileTx{c, c}) })
		},
		read: func(ctx context.Context, fn func(transaction) error) error {
			e, err := db.use(ctx)
			if err != nil {
				return err
			}
			return fn(fileTx{db: e.reads})
		},
	}
}

// Asks are those in the database, of all instances.
func (db *Postgres) Asks() *Asks {
	return &Asks{
		write: func(ctx context.Context, fn func(transaction) error) error {
			return db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error { return fn(sharedTx{c}) })
		},
		read: func(ctx context.Context, fn func(transaction) error) error {
			return db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error { return fn(sharedTx{c}) })
		},
	}
}

type fileTx struct {
	conn *rawConn // nil for who only reads
	db   querier
}

func (t fileTx) each(ctx context.Context, to into, fn func() error, query string, values ...any) error {
	return each(ctx, t.db, to, fn, query, values...)
}

func (t fileTx) do(_ context.Context, query string, values ...any) error {
	args := make([]driver.Value, len(values))
	for i, v := range values {
		args[i] = v
	}
	return t.conn.exec(query, args...)
}

func (fileTx) alone(context.Context) error { return nil } // one writes at a time
func (fileTx) tell(context.Context) error  { return nil }

type sharedTx struct{ conn *pgConn }

func (t sharedTx) each(ctx context.Context, to into, fn func() error, query string, values ...any) error {
	return t.conn.each(ctx, to, fn, numbered(query), cleaned(values)...)
}

func (t sharedTx) do(ctx context.Context, query string, values ...any) error {
	_, err := t.conn.exec(ctx, numbered(query), cleaned(values)...)
	return err
}

// pgAskLock is the number of the advisory lock of who counts before it adds.
const pgAskLock = pgLock + 1

func (t sharedTx) alone(ctx context.Context) error {
	return t.do(ctx, "SELECT pg_advisory_xact_lock(?)", pgAskLock)
}

func (t sharedTx) tell(ctx context.Context) error {
	return t.do(ctx, "SELECT pg_notify(?, ?)", pgChannel, pgToldAsks)
}

// numbered writes the values of a query as PostgreSQL has them.
func numbered(query string) string {
	var out strings.Builder
	for n := 1; ; n++ {
		before, after, more := strings.Cut(query, "?")
		out.WriteString(before)
		if !more {
			return out.String()
		}
		out.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

func cleaned(values []any) []any {
	for i, v := range values {
		if text, ok := v.(string); ok {
			values[i] = pgClean(text)
		}
	}
	return values
}

const questionColumns = `id, key, state, principal, session, server, tool, fingerprint, revision, variant, arguments, cut, lane, because, rule, reason,
	actor, source, client, client_version, record, asked, last_asked, ends, answered, answered_by, answered_via, answer`

// question runs a query that gives questions, and returns them.
func questions(ctx context.Context, t transaction, query string, values ...any) (all []ask.Question, err error) {
	var q ask.Question
	var key, print, shown []byte
	var state string
	var cut, asked, last, until, answered int64
	err = t.each(ctx, into{&q.ID, &key, &state, &q.Principal, &q.Session, &q.Server, &q.Tool, &print, &q.Revision, &q.Variant, &shown, &cut, &q.Lane, &q.Because,
		&q.Rule, &q.Reason, &q.Actor, &q.Source, &q.Client, &q.ClientVersion, &q.Record, &asked, &last, &until, &answered, &q.By, &q.Via, &q.Why}, func() error {
		one := q
		if copy(one.Key[:], key) != len(one.Key) || len(key) != len(one.Key) {
			return fmt.Errorf("%w: the key of a question has %d bytes", errDamaged, len(key))
		}
		one.State, one.Shown, one.Cut = ask.State(state), shown, cut != 0
		one.Asked, one.Last, one.Until, one.Answered = timeAt(asked), timeAt(last), timeAt(until), timeAt(answered)
		all = append(all, one)
		return fingerprint(&all[len(all)-1].Fingerprint, print)
	}, query, values...)
	return all, err
}

func timeAt(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// span is what an end has to lie in so that it is neither over nor from a wrong clock.
func span(now time.Time, longest time.Duration) (after, latest int64) {
	return now.UnixMicro(), now.Add(longest + ask.Skew).UnixMicro()
}

// Find returns the question of a call whose answer holds at a time, or that it waits with,
// which then waits anew; found reports whether there is one. When a clock was set
// back there may be both, and two answers: then the denial counts.
func (a *Asks) Find(ctx context.Context, k ask.Key, now time.Time) (q ask.Question, found bool, err error) {
	err = a.write(ctx, func(t transaction) error {
		q, found, err = findQuestion(ctx, t, k, now)
		return err
	})
	return q, found, err
}

func findQuestion(ctx context.Context, t transaction, k ask.Key, now time.Time) (ask.Question, bool, error) {
	after, latest := span(now, ask.Life)
	all, err := questions(ctx, t, "UPDATE question SET last_asked = ?, ends = ? WHERE key = ? AND state = 'waiting' AND ends > ? AND ends <= ? RETURNING "+questionColumns,
		after, now.Add(ask.Life).UnixMicro(), k[:], after, latest)
	if err == nil { // after what waits: it may be answered meanwhile
		var answered []ask.Question
		answered, err = questions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE key = ? AND state IN ('approved', 'denied') AND ends > ? AND ends <= ? ORDER BY state DESC LIMIT 1", k[:], after, latest)
		all = append(answered, all...)
	}
	if err != nil || len(all) == 0 {
		return ask.Question{}, false, err
	}
	return all[0], true, nil
}

// Add asks a question, unless there is one with the same key by now: fresh reports whether
// it was added. The problem is OVERLOADED where there are as many as there may be.
func (a *Asks) Add(ctx context.Context, q ask.Question) (stored ask.Question, fresh bool, err error) {
	err = a.write(ctx, func(t transaction) error {
		if err := t.alone(ctx); err != nil {
			return err
		}
		var found bool
		if stored, found, err = findQuestion(ctx, t, q.Key, q.Asked); err != nil || found {
			return err
		}
		stored, fresh = q, true
		if err := room(ctx, t, &q); err != nil {
			return err
		}
		if err := insert(ctx, t, &q); err != nil {
			return err
		}
		if err := tidyAsks(ctx, t, q.Asked); err != nil {
			return err
		}
		return t.tell(ctx)
	})
	return stored, fresh && err == nil, err
}

// room refuses a question where there are as many as there may be.
func room(ctx context.Context, t transaction, q *ask.Question) error {
	var all, own int64
	after, latest := span(q.Asked, ask.Life)
	err := t.each(ctx, into{&all, &own}, func() error { return nil },
		"SELECT count(*), count(CASE WHEN principal = ? THEN 1 END) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", q.Principal, after, latest)
	if err == nil && (all >= ask.MaxWaiting || own >= ask.MaxOfActor) {
		return ask.TooMany()
	}
	return err
}

func insert(ctx context.Context, t transaction, q *ask.Question) error {
	cut := int64(0)
	if q.Cut {
		cut = 1
	}
	return t.do(ctx, "INSERT INTO question ("+questionColumns+") VALUES (?"+strings.Repeat(", ?", 27)+")",
		q.ID, q.Key[:], string(q.State), q.Principal, q.Session, q.Server, q.Tool, q.Fingerprint[:], q.Revision, q.Variant, []byte(q.Shown), cut, q.Lane, q.Because, q.Rule, q.Reason,
		q.Actor, q.Source, q.Client, q.ClientVersion, q.Record, microsOf(q.Asked), microsOf(q.Last), microsOf(q.Until), microsOf(q.Answered), q.By, q.Via, q.Why)
}

// What is over stays for some time, to be looked at, but for the arguments.
const (
	keepAsks    = 30 * 24 * time.Hour
	mostAsks    = 10_000
	dropOldAsks = "DELETE FROM question WHERE id IN (SELECT id FROM question ORDER BY asked DESC LIMIT 1000 OFFSET ?)"
)

// gone stands for arguments that are not kept any more: they are on record.
var gone = []byte("null")

func tidyAsks(ctx context.Context, t transaction, now time.Time) error {
	before := now.Add(-keepAsks).UnixMicro()
	over := t.do(ctx, "UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE state IN ('waiting', 'approved', 'denied') AND ends <= ?", gone, now.UnixMicro())
	return errors.Join(over, t.do(ctx, "DELETE FROM question WHERE asked < ?", before), t.do(ctx, dropOldAsks, int64(mostAsks)), t.do(ctx, "DELETE FROM lease WHERE ends < ?", before))
}

// Question returns a question by its id, or NOT_FOUND.
func (a *Asks) Question(ctx context.Context, id string) (q ask.Question, err error) {
	err = a.read(ctx, func(t transaction) error {
		q, err = questionOf(ctx, t, id)
		return err
	})
	return q, err
}

func questionOf(ctx context.Context, t transaction, id string) (ask.Question, error) {
	all, err := questions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE id = ?", id)
	if err == nil && len(all) == 0 {
		err = problem.Newf(problem.NotFound, "There is no call with the id '%s' that waits.", problem.ClipName(id)).WithHint("See the calls that wait with `mcpproxy pending list`.")
	}
	if err != nil {
		return ask.Question{}, err
	}
	return all[0], nil
}

// Waiting returns the questions that wait at a time, the oldest first.
func (a *Asks) Waiting(ctx context.Context, now time.Time) (all []ask.Question, err error) {
	err = a.read(ctx, func(t transaction) error {
		after, latest := span(now, ask.Life)
		all, err = questions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ? ORDER BY asked, id", after, latest)
		return err
	})
	return all, err
}

// Count returns how many questions wait at a time.
func (a *Asks) Count(ctx context.Context, now time.Time) (n int, err error) {
	err = a.read(ctx, func(t transaction) error {
		var all int64
		after, latest := span(now, ask.Life)
		err := t.each(ctx, into{&all}, func() error { return nil }, "SELECT count(*) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", after, latest)
		n = int(all)
		return err
	})
	return n, err
}

// Answer stores what a person has decided: the first answer counts. The problems are
// NOT_FOUND and CONFLICT.
func (a *Asks) Answer(ctx context.Context, id string, given ask.Answer) (q ask.Question, err error) {
	err = a.write(ctx, func(t transaction) error {
		if q, err = questionOf(ctx, t, id); err != nil {
			return err
		}
		answered := q
		if p := answered.Give(given); p != nil {
			return p
		}
		found := false
		err := t.each(ctx, into{new(string)}, func() error { found = true; return nil },
			"UPDATE question SET state = ?, ends = ?, answered = ?, answered_by = ?, answered_via = ?, answer = ? WHERE id = ? AND state = 'waiting' RETURNING id",
			string(answered.State), microsOf(answered.Until), microsOf(answered.Answered), answered.By, answered.Via, answered.Why, id)
		if err == nil && !found { // another instance was first
			if q, err = questionOf(ctx, t, id); err == nil {
				err = problem.From(q.Give(given))
			}
		}
		if q = answered; err != nil {
			return err
		}
		return t.tell(ctx)
	})
	return q, err
}

// Use uses the approval of a question for the call with the key, once; ok reports whether
// it holds.
func (a *Asks) Use(ctx context.Context, id string, k ask.Key, now time.Time) (ok bool, err error) {
	err = a.write(ctx, func(t transaction) error {
		after, latest := span(now, ask.Life)
		return t.each(ctx, into{new(string)}, func() error { ok = true; return nil },
			"UPDATE question SET state = 'used', arguments = ?, cut = 0 WHERE id = ? AND key = ? AND state = 'approved' AND ends > ? AND ends <= ? RETURNING id", gone, id, k[:], after, latest)
	})
	return ok && err == nil, err
}

const leaseColumns = "id, server, tools, lane, client, actor, revision, calls, calls_left, given, ends, given_by, given_via, revoked"

func leases(ctx context.Context, t transaction, query string, values ...any) (all []ask.Lease, err error) {
	var l ask.Lease
	var lane, given, until, revoked int64
	err = t.each(ctx, into{&l.ID, &l.Server, &l.Tools, &lane, &l.Client, &l.Actor, &l.Revision, &l.Calls, &l.Left, &given, &until, &l.By, &l.Via, &revoked}, func() error {
		one := l
		one.Lane, one.Given, one.Until, one.Revoked = auth.Lane(lane), timeAt(given), timeAt(until), timeAt(revoked)
		all = append(all, one)
		return nil
	}, query, values...)
	return all, err
}

const runningLeases = "SELECT " + leaseColumns + " FROM lease WHERE revoked = 0 AND calls_left > 0 AND ends > ? AND ends <= ? ORDER BY ends, id"

// Leases returns those that have neither been revoked nor used up by a time.
func (a *Asks) Leases(ctx context.Context, now time.Time) (all []ask.Lease, err error) {
	after, latest := span(now, ask.LongestLease)
	err = a.read(ctx, func(t transaction) error {
		all, err = leases(ctx, t, runningLeases, after, latest)
		return err
	})
	return all, err
}

// AddLease stores a lease. The problem is OVERLOADED where there are as many as may be.
func (a *Asks) AddLease(ctx context.Context, l ask.Lease) error {
	return a.write(ctx, func(t transaction) error {
		if err := t.alone(ctx); err != nil {
			return err
		}
		after, latest := span(l.Given, ask.LongestLease)
		all, err := leases(ctx, t, runningLeases, after, latest)
		if err == nil && len(all) >= ask.MaxLeases {
			err = problem.Newf(problem.Overloaded, "There are %d leases, which is the most.", ask.MaxLeases).WithHint("Revoke some: `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		if err := t.do(ctx, "INSERT INTO lease ("+leaseColumns+") VALUES (?"+strings.Repeat(", ?", 13)+")", l.ID, l.Server, l.Tools, int64(l.Lane), l.Client, l.Actor, l.Revision,
			l.Calls, l.Left, microsOf(l.Given), microsOf(l.Until), l.By, l.Via, microsOf(l.Revoked)); err != nil {
			return err
		}
		return t.tell(ctx)
	})
}

// Revoke ends a lease, and returns it. The problem is NOT_FOUND.
func (a *Asks) Revoke(ctx context.Context, id string, now time.Time) (l ask.Lease, err error) {
	err = a.write(ctx, func(t transaction) error {
		all, err := leases(ctx, t, "UPDATE lease SET revoked = ? WHERE id = ? AND revoked = 0 RETURNING "+leaseColumns, now.UnixMicro(), id)
		if err == nil && len(all) == 0 {
			err = problem.Newf(problem.NotFound, "There is no lease '%s'.", problem.ClipName(id)).WithHint("See the leases with `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		l = all[0]
		return t.tell(ctx)
	})
	return l, err
}

// Void ends an approval that does not count.
func (a *Asks) Void(ctx context.Context, id string) error {
	return a.write(ctx, func(t transaction) error {
		if err := t.do(ctx, "UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE id = ? AND state = 'approved'", gone, id); err != nil {
			return err
		}
		return t.tell(ctx)
	})
}

// Lease takes one call from a lease that covers it and counts; "" where none does. The question with
// the key, if one waits, is over then: record is that of the call when it was held.
func (a *Asks) Lease(ctx context.Context, c *ask.Call, k ask.Key, lane auth.Lane, now time.Time, counts func(*ask.Lease) bool) (id, record string, err error) {
	all, err := a.Leases(ctx, now)
	for _, l := range all {
		if err != nil || id != "" {
			break
		}
		if l.Covers(c, lane) && counts(&l) {
			id, record, err = a.take(ctx, l.ID, k, now)
		}
	}
	return id, record, err
}

func (a *Asks) take(ctx context.Context, lease string, k ask.Key, now time.Time) (id, record string, err error) {
	after, latest := span(now, ask.LongestLease)
	err = a.write(ctx, func(t transaction) error {
		if err := t.each(ctx, into{&id}, func() error { return nil },
			"UPDATE lease SET calls_left = calls_left - 1 WHERE id = ? AND calls_left > 0 AND revoked = 0 AND ends > ? AND ends <= ? RETURNING id", lease, after, latest); err != nil || id == "" {
			return err
		}
		if err := t.each(ctx, into{&record}, func() error { return nil },
			"UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE key = ? AND state = 'waiting' RETURNING record", gone, k[:]); err != nil {
			return err
		}
		return t.tell(ctx)
	})
	return id, record, err
}
