package ask

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// Call is a call that needs an approval.
type Call struct {
	Principal string // the caller
	Session   string // session of a legacy client; "" in the modern protocol
	tool.ID
	Fingerprint tool.Fingerprint // fingerprint of the checked definition
	Arguments   json.RawMessage  // as sent
	Revision    string           // revision of the configuration, without settings of one instance
	Variant     string
}

// CallKey identifies a call.
type CallKey [sha256.Size]byte

// Key returns the key of the call. Equivalent JSON arguments have the same key.
func (c *Call) Key() CallKey {
	arguments, err := tool.CanonicalJSON(c.Arguments)
	form := "canonical"
	if err != nil { // in this case only identical bytes have the same key
		arguments, form = c.Arguments, "bytes"
	}
	digest := sha256.Sum256(arguments)
	var out []byte
	for _, part := range []string{c.Principal, c.Session, c.Server, c.Tool, string(c.Fingerprint[:]), form, string(digest[:]), c.Revision, c.Variant} {
		out = append(binary.BigEndian.AppendUint64(out, uint64(len(part))), part...)
	}
	return sha256.Sum256(out)
}

// QuestionState is the state of a question.
type QuestionState string

// The states. A waiting question becomes approved, denied or expired; an approved one becomes used or
// expired.
const (
	Waiting  QuestionState = "waiting"
	Approved QuestionState = "approved"
	Denied   QuestionState = "denied"
	Used     QuestionState = "used"
	Expired  QuestionState = "expired"
)

// Words returns all states.
func (QuestionState) Words() []string {
	return []string{string(Waiting), string(Approved), string(Denied), string(Used), string(Expired)}
}

// The limits of questions.
const (
	// Life is the time for which a question waits after it was last asked, and for which an answer is valid.
	Life = 15 * time.Minute
	// Skew is the largest clock difference between instances. A question or lease whose end is further in the future
	// than possible counts as expired.
	Skew = time.Minute
	// MaxWaiting limits the open questions, MaxOfActor the open questions of one actor, and maxHeld the waiting calls
	// of one process.
	MaxWaiting = 1_000
	MaxOfActor = 100
	maxHeld    = 1_000
	// MaxArguments limits the shown arguments, in bytes.
	MaxArguments = 64 << 10
	// MaxReason limits the reason of a denial, in bytes.
	MaxReason = 2_000
)

// Question asks a user about a call.
type Question struct {
	ID    string
	Key   CallKey
	State QuestionState
	Call  // without Arguments
	// Shown are the masked arguments. If Cut is set, it is their beginning as a JSON string. It becomes null some
	// time after the question has ended.
	Shown json.RawMessage
	Cut   bool

	Lane    string // lane of the call
	Because string // reason for the lane
	Rule    string // rule that requires the approval
	Reason  string // given by the caller
	// The caller and its client.
	Actor, Source, Client, ClientVersion string
	Record                               string // ID of the record of the held call

	Asked, Last time.Time // first and last time
	Until       time.Time // end of the wait, or of the answer's validity
	Answered    time.Time // zero: open
	By, Via     string    // user who answered, and the interface
	Why         string    // reason for a denial
}

// StateAt returns the state at a time, considering expiry.
func (q *Question) StateAt(now time.Time) QuestionState {
	if q.State != Used && (!now.Before(q.Until) || q.Until.After(now.Add(Life+Skew))) {
		return Expired
	}
	return q.State
}

// ByForm is the value of Via for an answer in a form of the calling client.
const ByForm = "client form"

// Answer is the decision about a question.
type Answer struct {
	Approve bool
	Why     string // reason for a denial
	By, Via string
	At      time.Time
}

// RecordAnswer answers a waiting question; the first answer counts. If the question no longer waits, the problem is a
// CONFLICT with its current state.
func (q *Question) RecordAnswer(a Answer) *problem.Problem {
	if state := q.StateAt(a.At); state != Waiting {
		return q.alreadyDecidedProblem(state)
	}
	q.State, q.Why = Denied, a.Why
	if a.Approve {
		q.State, q.Why = Approved, ""
	}
	q.By, q.Via, q.Answered, q.Until = a.By, a.Via, a.At, a.At.Add(Life)
	return nil
}

func (q *Question) alreadyDecidedProblem(state QuestionState) *problem.Problem {
	what := "has expired: no one answered in time"
	switch {
	case state == Used:
		what = "was approved by " + q.By + ", and the call was made"
	case q.State == Denied:
		what = "was denied by " + q.By
	case q.State == Approved:
		what = "was approved by " + q.By
	case !q.Answered.IsZero():
		what = "was answered by " + q.By + ", and has ended"
	}
	return problem.Newf(problem.Conflict, "The question %s %s.", q.ID, what).
		WithHint("The first answer counts. A repeated call needs a new approval.").With("state", string(state))
}

// TooManyWaitingProblem returns the problem when the limit of questions is reached.
func TooManyWaitingProblem() *problem.Problem {
	return problem.Newf(problem.Overloaded, "Too many calls wait for approval: at most %d per client, and %d in all.", MaxOfActor, MaxWaiting).
		WithHint("Ask the user to answer those that wait, in the UI or with `mcpproxy pending list`; then call again.")
}
