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

// Questions has what people are asked about, and the leases, in a database of either kind.
// What it stores survives a loss of power, too: an approval that was used is never
// good again.
type QuestionStore struct {
	write func(ctx context.Context, fn func(t portableTx) error) error
	read  func(ctx context.Context, fn func(t portableTx) error) error
}

// portableTx runs statements, in which ? stands for a value: an int64, a string or a
// []byte. Rows are read into those.
type portableTx interface {
	eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error
	exec(ctx context.Context, query string, values ...any) error
	// alone has it that no other transaction that is alone runs at a time, and tell has
	// other instances told.
	lockExclusive(ctx context.Context) error
	notifyInstances(ctx context.Context) error
}

// Questions are those in the file.
func (db *SQLite) Questions() *QuestionStore {
	return &QuestionStore{
		write: func(ctx context.Context, fn func(portableTx) error) error {
			return writeTxDurably(ctx, db, func(c *sqliteWriteConn) error { return fn(sqliteTx{c, c}) })
		},
		read: func(ctx context.Context, fn func(portableTx) error) error {
			e, err := db.waitOpen(ctx)
			if err != nil {
				return err
			}
			return fn(sqliteTx{db: e.reads})
		},
	}
}

// Questions are those in the database, of all instances.
func (db *Postgres) Questions() *QuestionStore {
	return &QuestionStore{
		write: func(ctx context.Context, fn func(portableTx) error) error {
			return db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error { return fn(pgTx{c}) })
		},
		read: func(ctx context.Context, fn func(portableTx) error) error {
			return db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error { return fn(pgTx{c}) })
		},
	}
}

type sqliteTx struct {
	conn *sqliteWriteConn // nil for who only reads
	db   querier
}

func (t sqliteTx) eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error {
	return eachRow(ctx, t.db, to, fn, query, values...)
}

func (t sqliteTx) exec(_ context.Context, query string, values ...any) error {
	args := make([]driver.Value, len(values))
	for i, v := range values {
		args[i] = v
	}
	return t.conn.exec(query, args...)
}

func (sqliteTx) lockExclusive(context.Context) error   { return nil } // one writes at a time
func (sqliteTx) notifyInstances(context.Context) error { return nil }

type pgTx struct{ conn *pgConn }

func (t pgTx) eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error {
	return t.conn.eachRow(ctx, to, fn, numberPlaceholders(query), cleanPgTexts(values)...)
}

func (t pgTx) exec(ctx context.Context, query string, values ...any) error {
	_, err := t.conn.exec(ctx, numberPlaceholders(query), cleanPgTexts(values)...)
	return err
}

// pgQuestionLock is the number of the advisory lock of who counts before it adds.
const pgQuestionLock = pgMigrationLock + 1

func (t pgTx) lockExclusive(ctx context.Context) error {
	return t.exec(ctx, "SELECT pg_advisory_xact_lock(?)", pgQuestionLock)
}

func (t pgTx) notifyInstances(ctx context.Context) error {
	return t.exec(ctx, "SELECT pg_notify(?, ?)", pgChannel, notifyQuestions)
}

// numberPlaceholders writes the values of a query as PostgreSQL has them.
func numberPlaceholders(query string) string {
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

func cleanPgTexts(values []any) []any {
	for i, v := range values {
		if text, ok := v.(string); ok {
			values[i] = cleanPgText(text)
		}
	}
	return values
}

const questionColumns = `id, key, state, principal, session, server, tool, fingerprint, revision, variant, arguments, cut, lane, because, rule, reason,
	actor, source, client, client_version, record, asked, last_asked, ends, answered, answered_by, answered_via, answer`

// question runs a query that gives questions, and returns them.
func queryQuestions(ctx context.Context, t portableTx, query string, values ...any) (all []ask.Question, err error) {
	var q ask.Question
	var key, print, shown []byte
	var state string
	var cut, asked, last, until, answered int64
	err = t.eachRow(ctx, scanTargets{&q.ID, &key, &state, &q.Principal, &q.Session, &q.Server, &q.Tool, &print, &q.Revision, &q.Variant, &shown, &cut, &q.Lane, &q.Because,
		&q.Rule, &q.Reason, &q.Actor, &q.Source, &q.Client, &q.ClientVersion, &q.Record, &asked, &last, &until, &answered, &q.By, &q.Via, &q.Why}, func() error {
		one := q
		if copy(one.Key[:], key) != len(one.Key) || len(key) != len(one.Key) {
			return fmt.Errorf("%w: the key of a question has %d bytes", errDamaged, len(key))
		}
		one.State, one.Shown, one.Cut = ask.State(state), shown, cut != 0
		one.Asked, one.Last, one.Until, one.Answered = timeFromMicros(asked), timeFromMicros(last), timeFromMicros(until), timeFromMicros(answered)
		all = append(all, one)
		return parseFingerprint(&all[len(all)-1].Fingerprint, print)
	}, query, values...)
	return all, err
}

func timeFromMicros(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func timeToMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// hourSpan is what an end has to lie in so that it is neither over nor from a wrong clock.
func validEndRange(now time.Time, longest time.Duration) (after, latest int64) {
	return now.UnixMicro(), now.Add(longest + ask.Skew).UnixMicro()
}

// Find returns the question of a call whose answer holds at a time, or that it waits with,
// which then waits anew; found reports whether there is one. When a clock was set
// back there may be both, and two answers: then the denial counts.
func (a *QuestionStore) Find(ctx context.Context, k ask.Key, now time.Time) (q ask.Question, found bool, err error) {
	err = a.write(ctx, func(t portableTx) error {
		q, found, err = renewOrFindQuestion(ctx, t, k, now)
		return err
	})
	return q, found, err
}

func renewOrFindQuestion(ctx context.Context, t portableTx, k ask.Key, now time.Time) (ask.Question, bool, error) {
	after, latest := validEndRange(now, ask.Life)
	all, err := queryQuestions(ctx, t, "UPDATE question SET last_asked = ?, ends = ? WHERE key = ? AND state = 'waiting' AND ends > ? AND ends <= ? RETURNING "+questionColumns,
		after, now.Add(ask.Life).UnixMicro(), k[:], after, latest)
	if err == nil { // after what waits: it may be answered meanwhile
		var answered []ask.Question
		answered, err = queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE key = ? AND state IN ('approved', 'denied') AND ends > ? AND ends <= ? ORDER BY state DESC LIMIT 1", k[:], after, latest)
		all = append(answered, all...)
	}
	if err != nil || len(all) == 0 {
		return ask.Question{}, false, err
	}
	return all[0], true, nil
}

// Add asks a question, unless there is one with the same key by now: fresh reports whether
// it was added. The problem is OVERLOADED where there are as many as there may be.
func (a *QuestionStore) Add(ctx context.Context, q ask.Question) (stored ask.Question, fresh bool, err error) {
	err = a.write(ctx, func(t portableTx) error {
		if err := t.lockExclusive(ctx); err != nil {
			return err
		}
		var found bool
		if stored, found, err = renewOrFindQuestion(ctx, t, q.Key, q.Asked); err != nil || found {
			return err
		}
		stored, fresh = q, true
		if err := checkQuestionLimits(ctx, t, &q); err != nil {
			return err
		}
		if err := insertQuestion(ctx, t, &q); err != nil {
			return err
		}
		if err := expireAndDeleteQuestions(ctx, t, q.Asked); err != nil {
			return err
		}
		return t.notifyInstances(ctx)
	})
	return stored, fresh && err == nil, err
}

// buffers refuses a question where there are as many as there may be.
func checkQuestionLimits(ctx context.Context, t portableTx, q *ask.Question) error {
	var all, own int64
	after, latest := validEndRange(q.Asked, ask.Life)
	err := t.eachRow(ctx, scanTargets{&all, &own}, func() error { return nil },
		"SELECT count(*), count(CASE WHEN principal = ? THEN 1 END) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", q.Principal, after, latest)
	if err == nil && (all >= ask.MaxWaiting || own >= ask.MaxOfActor) {
		return ask.TooMany()
	}
	return err
}

func insertQuestion(ctx context.Context, t portableTx, q *ask.Question) error {
	cut := int64(0)
	if q.Cut {
		cut = 1
	}
	return t.exec(ctx, "INSERT INTO question ("+questionColumns+") VALUES (?"+strings.Repeat(", ?", 27)+")",
		q.ID, q.Key[:], string(q.State), q.Principal, q.Session, q.Server, q.Tool, q.Fingerprint[:], q.Revision, q.Variant, []byte(q.Shown), cut, q.Lane, q.Because, q.Rule, q.Reason,
		q.Actor, q.Source, q.Client, q.ClientVersion, q.Record, timeToMicros(q.Asked), timeToMicros(q.Last), timeToMicros(q.Until), timeToMicros(q.Answered), q.By, q.Via, q.Why)
}

// What is over stays for some time, to be looked at, but for the arguments.
const (
	questionRetention  = 30 * 24 * time.Hour
	maxQuestions       = 10_000
	deleteOldQuestions = "DELETE FROM question WHERE id IN (SELECT id FROM question ORDER BY asked DESC LIMIT 1000 OFFSET ?)"
)

// deleted stands for arguments that are not kept any more: they are on record.
var erasedArguments = []byte("null")

func expireAndDeleteQuestions(ctx context.Context, t portableTx, now time.Time) error {
	before := now.Add(-questionRetention).UnixMicro()
	over := t.exec(ctx, "UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE state IN ('waiting', 'approved', 'denied') AND ends <= ?", erasedArguments, now.UnixMicro())
	return errors.Join(over, t.exec(ctx, "DELETE FROM question WHERE asked < ?", before), t.exec(ctx, deleteOldQuestions, int64(maxQuestions)), t.exec(ctx, "DELETE FROM lease WHERE ends < ?", before))
}

// Question returns a question by its id, or NOT_FOUND.
func (a *QuestionStore) Question(ctx context.Context, id string) (q ask.Question, err error) {
	err = a.read(ctx, func(t portableTx) error {
		q, err = readQuestion(ctx, t, id)
		return err
	})
	return q, err
}

func readQuestion(ctx context.Context, t portableTx, id string) (ask.Question, error) {
	all, err := queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE id = ?", id)
	if err == nil && len(all) == 0 {
		err = problem.Newf(problem.NotFound, "There is no call with the id '%s' that waits.", problem.Brief(id)).WithHint("See the calls that wait with `mcpproxy pending list`.")
	}
	if err != nil {
		return ask.Question{}, err
	}
	return all[0], nil
}

// WaitingCounts returns the questions that wait at a time, the oldest first.
func (a *QuestionStore) Waiting(ctx context.Context, now time.Time) (all []ask.Question, err error) {
	err = a.read(ctx, func(t portableTx) error {
		after, latest := validEndRange(now, ask.Life)
		all, err = queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ? ORDER BY asked, id", after, latest)
		return err
	})
	return all, err
}

// Count returns how many questions wait at a time.
func (a *QuestionStore) Count(ctx context.Context, now time.Time) (n int, err error) {
	err = a.read(ctx, func(t portableTx) error {
		var all int64
		after, latest := validEndRange(now, ask.Life)
		err := t.eachRow(ctx, scanTargets{&all}, func() error { return nil }, "SELECT count(*) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", after, latest)
		n = int(all)
		return err
	})
	return n, err
}

// Answer stores what a person has decided: the first answer counts. The problems are
// NOT_FOUND and CONFLICT.
func (a *QuestionStore) Answer(ctx context.Context, id string, given ask.Answer) (q ask.Question, err error) {
	err = a.write(ctx, func(t portableTx) error {
		if q, err = readQuestion(ctx, t, id); err != nil {
			return err
		}
		answered := q
		if p := answered.Give(given); p != nil {
			return p
		}
		found := false
		err := t.eachRow(ctx, scanTargets{new(string)}, func() error { found = true; return nil },
			"UPDATE question SET state = ?, ends = ?, answered = ?, answered_by = ?, answered_via = ?, answer = ? WHERE id = ? AND state = 'waiting' RETURNING id",
			string(answered.State), timeToMicros(answered.Until), timeToMicros(answered.Answered), answered.By, answered.Via, answered.Why, id)
		if err == nil && !found { // another instance was first
			if q, err = readQuestion(ctx, t, id); err == nil {
				err = problem.From(q.Give(given))
			}
		}
		if q = answered; err != nil {
			return err
		}
		return t.notifyInstances(ctx)
	})
	return q, err
}

// Use uses the approval of a question for the call with the key, once; ok reports whether
// it holds.
func (a *QuestionStore) Use(ctx context.Context, id string, k ask.Key, now time.Time) (ok bool, err error) {
	err = a.write(ctx, func(t portableTx) error {
		after, latest := validEndRange(now, ask.Life)
		return t.eachRow(ctx, scanTargets{new(string)}, func() error { ok = true; return nil },
			"UPDATE question SET state = 'used', arguments = ?, cut = 0 WHERE id = ? AND key = ? AND state = 'approved' AND ends > ? AND ends <= ? RETURNING id", erasedArguments, id, k[:], after, latest)
	})
	return ok && err == nil, err
}

const leaseColumns = "id, server, tools, lane, client, actor, revision, calls, calls_left, given, ends, given_by, given_via, revoked"

func queryLeases(ctx context.Context, t portableTx, query string, values ...any) (all []ask.Lease, err error) {
	var l ask.Lease
	var lane, given, until, revoked int64
	err = t.eachRow(ctx, scanTargets{&l.ID, &l.Server, &l.Tools, &lane, &l.Client, &l.Actor, &l.Revision, &l.Calls, &l.Left, &given, &until, &l.By, &l.Via, &revoked}, func() error {
		one := l
		one.Lane, one.Given, one.Until, one.Revoked = auth.Lane(lane), timeFromMicros(given), timeFromMicros(until), timeFromMicros(revoked)
		all = append(all, one)
		return nil
	}, query, values...)
	return all, err
}

const selectRunningLeases = "SELECT " + leaseColumns + " FROM lease WHERE revoked = 0 AND calls_left > 0 AND ends > ? AND ends <= ? ORDER BY ends, id"

// Leases returns those that have neither been revoked nor used up by a time.
func (a *QuestionStore) Leases(ctx context.Context, now time.Time) (all []ask.Lease, err error) {
	after, latest := validEndRange(now, ask.LongestLease)
	err = a.read(ctx, func(t portableTx) error {
		all, err = queryLeases(ctx, t, selectRunningLeases, after, latest)
		return err
	})
	return all, err
}

// AddLease stores a lease. The problem is OVERLOADED where there are as many as may be.
func (a *QuestionStore) AddLease(ctx context.Context, l ask.Lease) error {
	return a.write(ctx, func(t portableTx) error {
		if err := t.lockExclusive(ctx); err != nil {
			return err
		}
		after, latest := validEndRange(l.Given, ask.LongestLease)
		all, err := queryLeases(ctx, t, selectRunningLeases, after, latest)
		if err == nil && len(all) >= ask.MaxLeases {
			err = problem.Newf(problem.Overloaded, "There are %d leases, which is the most.", ask.MaxLeases).WithHint("Revoke some: `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		if err := t.exec(ctx, "INSERT INTO lease ("+leaseColumns+") VALUES (?"+strings.Repeat(", ?", 13)+")", l.ID, l.Server, l.Tools, int64(l.Lane), l.Client, l.Actor, l.Revision,
			l.Calls, l.Left, timeToMicros(l.Given), timeToMicros(l.Until), l.By, l.Via, timeToMicros(l.Revoked)); err != nil {
			return err
		}
		return t.notifyInstances(ctx)
	})
}

// Revoke ends a lease, and returns it. The problem is NOT_FOUND.
func (a *QuestionStore) Revoke(ctx context.Context, id string, now time.Time) (l ask.Lease, err error) {
	err = a.write(ctx, func(t portableTx) error {
		all, err := queryLeases(ctx, t, "UPDATE lease SET revoked = ? WHERE id = ? AND revoked = 0 RETURNING "+leaseColumns, now.UnixMicro(), id)
		if err == nil && len(all) == 0 {
			err = problem.Newf(problem.NotFound, "There is no lease '%s'.", problem.Brief(id)).WithHint("See the leases with `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		l = all[0]
		return t.notifyInstances(ctx)
	})
	return l, err
}

// Void ends an approval that does not count.
func (a *QuestionStore) Void(ctx context.Context, id string) error {
	return a.write(ctx, func(t portableTx) error {
		if err := t.exec(ctx, "UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE id = ? AND state = 'approved'", erasedArguments, id); err != nil {
			return err
		}
		return t.notifyInstances(ctx)
	})
}

// Lease takes one call from a lease that covers it and counts; "" where none does. The question with
// the key, if one waits, is over then: record is that of the call when it was held.
func (a *QuestionStore) Lease(ctx context.Context, c *ask.Call, k ask.Key, lane auth.Lane, now time.Time, counts func(*ask.Lease) bool) (id, record string, err error) {
	all, err := a.Leases(ctx, now)
	for _, l := range all {
		if err != nil || id != "" {
			break
		}
		if l.Covers(c, lane) && counts(&l) {
			id, record, err = a.takeLeaseCall(ctx, l.ID, k, now)
		}
	}
	return id, record, err
}

func (a *QuestionStore) takeLeaseCall(ctx context.Context, lease string, k ask.Key, now time.Time) (id, record string, err error) {
	after, latest := validEndRange(now, ask.LongestLease)
	err = a.write(ctx, func(t portableTx) error {
		if err := t.eachRow(ctx, scanTargets{&id}, func() error { return nil },
			"UPDATE lease SET calls_left = calls_left - 1 WHERE id = ? AND calls_left > 0 AND revoked = 0 AND ends > ? AND ends <= ? RETURNING id", lease, after, latest); err != nil || id == "" {
			return err
		}
		if err := t.eachRow(ctx, scanTargets{&record}, func() error { return nil },
			"UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE key = ? AND state = 'waiting' RETURNING record", erasedArguments, k[:]); err != nil {
			return err
		}
		return t.notifyInstances(ctx)
	})
	return id, record, err
}
