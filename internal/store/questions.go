package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/problem"
)

// ApprovalQuestionStore stores questions about calls that wait for approval, and leases, in SQLite or PostgreSQL.
// Writes survive a loss of power, so that an approval cannot be used again.
type ApprovalQuestionStore struct{ db transactor }

// ApprovalQuestions returns the store of questions and leases.
func (s *commonStore) ApprovalQuestions() *ApprovalQuestionStore { return &ApprovalQuestionStore{s.db} }

const questionColumns = `id, key, state, principal, session, server, tool, fingerprint, revision, variant, arguments, cut, lane, because, rule, reason,
	actor, source, client, client_version, record, asked, last_asked, ends, answered, answered_by, answered_via, answer`

// queryQuestions returns the questions that a query selects.
func queryQuestions(ctx context.Context, t sqlReader, query string, values ...any) ([]ask.Question, error) {
	var q ask.Question
	var key, print, shown []byte
	var state string
	var cut, asked, last, until, answered int64
	return collectRows(ctx, t, scanTargets{&q.ID, &key, &state, &q.Principal, &q.Session, &q.Server, &q.Tool, &print, &q.Revision, &q.Variant, &shown, &cut, &q.Lane, &q.Because,
		&q.Rule, &q.Reason, &q.Actor, &q.Source, &q.Client, &q.ClientVersion, &q.Record, &asked, &last, &until, &answered, &q.By, &q.Via, &q.Why}, func() (ask.Question, error) {
		one := q
		if copy(one.Key[:], key) != len(one.Key) || len(key) != len(one.Key) {
			return one, fmt.Errorf("%w: the key of a question has %d bytes", errDamaged, len(key))
		}
		one.State, one.Shown, one.Cut = ask.QuestionState(state), shown, cut != 0
		one.Asked, one.Last, one.Until, one.Answered = timeFromMicros(asked), timeFromMicros(last), timeFromMicros(until), timeFromMicros(answered)
		err := parseFingerprint(&one.Fingerprint, print)
		return one, err
	}, query, values...)
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

// validEndRange returns the range of valid end times. Earlier times have passed, and later times are the result of a
// wrong clock.
func validEndRange(now time.Time, longest time.Duration) (after, latest int64) {
	return now.UnixMicro(), now.Add(longest + ask.Skew).UnixMicro()
}

// FindQuestion returns the question about a call if it has a valid answer or still waits. It extends the time of a
// waiting question. found reports whether there is such a question. If the clock was set back, there may be several.
// Then FindQuestion prefers an answered question to a waiting one, and a denial to an approval.
func (a *ApprovalQuestionStore) FindQuestion(ctx context.Context, k ask.CallKey, now time.Time) (q ask.Question, found bool, err error) {
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		q, found, err = renewOrFindQuestion(ctx, t, k, now)
		return err
	})
	return q, found, err
}

func renewOrFindQuestion(ctx context.Context, t sqlReader, k ask.CallKey, now time.Time) (ask.Question, bool, error) {
	after, latest := validEndRange(now, ask.Life)
	all, err := queryQuestions(ctx, t, "UPDATE question SET last_asked = ?, ends = ? WHERE key = ? AND state = 'waiting' AND ends > ? AND ends <= ? RETURNING "+questionColumns,
		after, now.Add(ask.Life).UnixMicro(), k[:], after, latest)
	if err == nil { // read the answers last, because a waiting question may have been answered in the meantime
		var answered []ask.Question
		answered, err = queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE key = ? AND state IN ('approved', 'denied') AND ends > ? AND ends <= ? ORDER BY state DESC LIMIT 1", k[:], after, latest)
		all = append(answered, all...)
	}
	if err != nil || len(all) == 0 {
		return ask.Question{}, false, err
	}
	return all[0], true, nil
}

// AddQuestion stores a question unless a valid one with the same key exists. It returns the stored question. fresh
// reports whether it was added. If too many questions wait, the error is an OVERLOADED problem.
func (a *ApprovalQuestionStore) AddQuestion(ctx context.Context, q ask.Question) (stored ask.Question, fresh bool, err error) {
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		t.lockExclusive()
		var found bool
		if stored, found, err = renewOrFindQuestion(ctx, t, q.Key, q.Asked); err != nil || found {
			return err
		}
		stored, fresh = q, true
		if err := checkQuestionLimits(ctx, t, &q); err != nil {
			return err
		}
		insertQuestion(t, &q)
		expireAndDeleteQuestions(t, q.Asked)
		t.notify(notifyQuestions)
		return nil
	})
	return stored, fresh && err == nil, err
}

// checkQuestionLimits returns an OVERLOADED problem if too many questions wait.
func checkQuestionLimits(ctx context.Context, t sqlReader, q *ask.Question) error {
	var all, own int64
	after, latest := validEndRange(q.Asked, ask.Life)
	_, err := t.firstRow(ctx, scanTargets{&all, &own},
		"SELECT count(*), count(CASE WHEN principal = ? THEN 1 END) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", q.Principal, after, latest)
	if err == nil && (all >= ask.MaxWaiting || own >= ask.MaxOfActor) {
		return ask.TooManyWaitingProblem()
	}
	return err
}

func insertQuestion(t sqlTx, q *ask.Question) {
	cut := int64(0)
	if q.Cut {
		cut = 1
	}
	t.write("INSERT INTO question ("+questionColumns+") VALUES (?"+strings.Repeat(", ?", 27)+")",
		q.ID, q.Key[:], string(q.State), q.Principal, q.Session, q.Server, q.Tool, q.Fingerprint[:], q.Revision, q.Variant, []byte(q.Shown), cut, q.Lane, q.Because, q.Rule, q.Reason,
		q.Actor, q.Source, q.Client, q.ClientVersion, q.Record, timeToMicros(q.Asked), timeToMicros(q.Last), timeToMicros(q.Until), timeToMicros(q.Answered), q.By, q.Via, q.Why)
}

// An ended question is kept for some time, without its arguments.
const (
	questionRetention  = 30 * 24 * time.Hour
	maxQuestions       = 10_000
	deleteOldQuestions = "DELETE FROM question WHERE id IN (SELECT id FROM question ORDER BY asked DESC LIMIT 1000 OFFSET ?)"
)

// erasedArguments replaces the arguments of ended questions. The activity log still has the arguments.
var erasedArguments = []byte("null")

func expireAndDeleteQuestions(t sqlTx, now time.Time) {
	before := now.Add(-questionRetention).UnixMicro()
	t.write("UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE state IN ('waiting', 'approved', 'denied') AND ends <= ?", erasedArguments, now.UnixMicro())
	t.write("DELETE FROM question WHERE asked < ?", before)
	t.write(deleteOldQuestions, int64(maxQuestions))
	t.write("DELETE FROM lease WHERE ends < ?", before)
}

// LoadQuestion returns a question by its ID, or a NOT_FOUND problem.
func (a *ApprovalQuestionStore) LoadQuestion(ctx context.Context, id string) (ask.Question, error) {
	return viewed(ctx, a.db, func(ctx context.Context, t sqlReader) (ask.Question, error) { return readQuestion(ctx, t, id) })
}

func readQuestion(ctx context.Context, t sqlReader, id string) (ask.Question, error) {
	all, err := queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE id = ?", id)
	if err == nil && len(all) == 0 {
		err = problem.Newf(problem.NotFound, "No pending call has the id '%s'.", problem.ClipName(id)).WithHint("See the pending calls with `mcpproxy pending list`.")
	}
	if err != nil {
		return ask.Question{}, err
	}
	return all[0], nil
}

// WaitingQuestions returns the questions that are waiting at a time, oldest first.
func (a *ApprovalQuestionStore) WaitingQuestions(ctx context.Context, now time.Time) ([]ask.Question, error) {
	return viewed(ctx, a.db, func(ctx context.Context, t sqlReader) ([]ask.Question, error) {
		after, latest := validEndRange(now, ask.Life)
		return queryQuestions(ctx, t, "SELECT "+questionColumns+" FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ? ORDER BY asked, id", after, latest)
	})
}

// CountWaitingQuestions returns the number of questions that are waiting at a time.
func (a *ApprovalQuestionStore) CountWaitingQuestions(ctx context.Context, now time.Time) (int, error) {
	return viewed(ctx, a.db, func(ctx context.Context, t sqlReader) (int, error) {
		var all int64
		after, latest := validEndRange(now, ask.Life)
		_, err := t.firstRow(ctx, scanTargets{&all}, "SELECT count(*) FROM question WHERE state = 'waiting' AND ends > ? AND ends <= ?", after, latest)
		return int(all), err
	})
}

// AnswerQuestion stores the answer of a reviewer. A question can be answered only once. It may return the problems
// NOT_FOUND and CONFLICT.
func (a *ApprovalQuestionStore) AnswerQuestion(ctx context.Context, id string, given ask.Answer) (q ask.Question, err error) {
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		if q, err = readQuestion(ctx, t, id); err != nil {
			return err
		}
		answered := q
		if p := answered.RecordAnswer(given); p != nil {
			return p
		}
		found, err := t.firstRow(ctx, scanTargets{new(string)},
			"UPDATE question SET state = ?, ends = ?, answered = ?, answered_by = ?, answered_via = ?, answer = ? WHERE id = ? AND state = 'waiting' RETURNING id",
			string(answered.State), timeToMicros(answered.Until), timeToMicros(answered.Answered), answered.By, answered.Via, answered.Why, id)
		if err == nil && !found { // another instance has answered the question
			if q, err = readQuestion(ctx, t, id); err == nil {
				err = problem.From(q.RecordAnswer(given))
			}
		}
		if q = answered; err != nil {
			return err
		}
		t.notify(notifyQuestions)
		return nil
	})
	return q, err
}

// UseApproval uses the approval of a question for the call with the key, which is possible only once. ok reports
// whether the approval is valid.
func (a *ApprovalQuestionStore) UseApproval(ctx context.Context, id string, k ask.CallKey, now time.Time) (ok bool, err error) {
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		after, latest := validEndRange(now, ask.Life)
		ok, err = t.firstRow(ctx, scanTargets{new(string)},
			"UPDATE question SET state = 'used', arguments = ?, cut = 0 WHERE id = ? AND key = ? AND state = 'approved' AND ends > ? AND ends <= ? RETURNING id", erasedArguments, id, k[:], after, latest)
		return err
	})
	return ok && err == nil, err
}

const leaseColumns = "id, server, tools, lane, client, actor, revision, calls, calls_left, given, ends, given_by, given_via, revoked"

func queryLeases(ctx context.Context, t sqlReader, query string, values ...any) ([]ask.Lease, error) {
	var l ask.Lease
	var lane, given, until, revoked int64
	return collectRows(ctx, t, scanTargets{&l.ID, &l.Server, &l.Tools, &lane, &l.Client, &l.Actor, &l.Revision, &l.Calls, &l.Left, &given, &until, &l.By, &l.Via, &revoked}, func() (ask.Lease, error) {
		one := l
		one.Lane, one.Given, one.Until, one.Revoked = auth.OperationLane(lane), timeFromMicros(given), timeFromMicros(until), timeFromMicros(revoked)
		return one, nil
	}, query, values...)
}

const selectRunningLeases = "SELECT " + leaseColumns + " FROM lease WHERE revoked = 0 AND calls_left > 0 AND ends > ? AND ends <= ? ORDER BY ends, id"

// ActiveLeases returns the leases that are not revoked, used up or expired at a time.
func (a *ApprovalQuestionStore) ActiveLeases(ctx context.Context, now time.Time) ([]ask.Lease, error) {
	after, latest := validEndRange(now, ask.LongestLease)
	return viewed(ctx, a.db, func(ctx context.Context, t sqlReader) ([]ask.Lease, error) {
		return queryLeases(ctx, t, selectRunningLeases, after, latest)
	})
}

// AddLease stores a lease. If there are too many, the error is an OVERLOADED problem.
func (a *ApprovalQuestionStore) AddLease(ctx context.Context, l ask.Lease) error {
	return a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		t.lockExclusive()
		after, latest := validEndRange(l.Given, ask.LongestLease)
		all, err := queryLeases(ctx, t, selectRunningLeases, after, latest)
		if err == nil && len(all) >= ask.MaxLeases {
			err = problem.Newf(problem.Overloaded, "There are %d leases, which is the limit.", ask.MaxLeases).WithHint("Revoke some. To list them, run `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		t.write("INSERT INTO lease ("+leaseColumns+") VALUES (?"+strings.Repeat(", ?", 13)+")", l.ID, l.Server, l.Tools, int64(l.Lane), l.Client, l.Actor, l.Revision,
			l.Calls, l.Left, timeToMicros(l.Given), timeToMicros(l.Until), l.By, l.Via, timeToMicros(l.Revoked))
		t.notify(notifyQuestions)
		return nil
	})
}

// RevokeLease ends a lease and returns it. If there is no such lease, the error is a NOT_FOUND problem.
func (a *ApprovalQuestionStore) RevokeLease(ctx context.Context, id string, now time.Time) (l ask.Lease, err error) {
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		all, err := queryLeases(ctx, t, "UPDATE lease SET revoked = ? WHERE id = ? AND revoked = 0 RETURNING "+leaseColumns, now.UnixMicro(), id)
		if err == nil && len(all) == 0 {
			err = problem.Newf(problem.NotFound, "The lease '%s' does not exist.", problem.ClipName(id)).WithHint("See the leases with `mcpproxy lease list`.")
		}
		if err != nil {
			return err
		}
		l = all[0]
		t.notify(notifyQuestions)
		return nil
	})
	return l, err
}

// VoidApproval invalidates an approval that must not be used.
func (a *ApprovalQuestionStore) VoidApproval(ctx context.Context, id string) error {
	return a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		t.write("UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE id = ? AND state = 'approved'", erasedArguments, id)
		t.notify(notifyQuestions)
		return nil
	})
}

// UseLease uses one call of a lease that covers the call and for which counts returns true. It returns the ID of the
// lease, or "" if there is none. If it uses a lease, it also ends a waiting question with the key, and record is the ID
// of the activity record of the held call.
func (a *ApprovalQuestionStore) UseLease(ctx context.Context, c *ask.Call, k ask.CallKey, lane auth.OperationLane, now time.Time, counts func(*ask.Lease) bool) (id, record string, err error) {
	all, err := a.ActiveLeases(ctx, now)
	for _, l := range all {
		if err != nil || id != "" {
			break
		}
		if l.Covers(c, lane) && counts(&l) {
			id, record, err = a.takeCallFromLease(ctx, l.ID, k, now)
		}
	}
	return id, record, err
}

func (a *ApprovalQuestionStore) takeCallFromLease(ctx context.Context, lease string, k ask.CallKey, now time.Time) (id, record string, err error) {
	after, latest := validEndRange(now, ask.LongestLease)
	err = a.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		if _, err := t.firstRow(ctx, scanTargets{&id},
			"UPDATE lease SET calls_left = calls_left - 1 WHERE id = ? AND calls_left > 0 AND revoked = 0 AND ends > ? AND ends <= ? RETURNING id", lease, after, latest); err != nil || id == "" {
			return err
		}
		if err := t.eachRow(ctx, scanTargets{&record}, func() error { return nil },
			"UPDATE question SET state = 'expired', arguments = ?, cut = 0 WHERE key = ? AND state = 'waiting' RETURNING record", erasedArguments, k[:]); err != nil {
			return err
		}
		t.notify(notifyQuestions)
		return nil
	})
	return id, record, err
}
