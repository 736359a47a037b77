package ask

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// Call is the one call that an approval is for.
type Call struct {
	Principal string // who makes it
	Session   string // of a legacy client; "" where requests stand for themselves
	tool.ID
	Fingerprint tool.Fingerprint // of the definition that was judged
	Arguments   json.RawMessage  // as they are sent
	Revision    string           // of the configuration, but for what is one instance's own
	Variant     string
}

// Key tells calls apart: that of another one differs.
type Key [sha256.Size]byte

// Key returns the key of the call. Arguments that mean the same are the same.
func (c *Call) Key() Key {
	arguments, err := tool.Canonical(c.Arguments)
	form := "canonical"
	if err != nil { // then they are the same byte for byte only
		arguments, form = c.Arguments, "bytes"
	}
	digest := sha256.Sum256(arguments)
	var out []byte
	for _, part := range []string{c.Principal, c.Session, c.Server, c.Tool, string(c.Fingerprint[:]), form, string(digest[:]), c.Revision, c.Variant} {
		out = append(binary.BigEndian.AppendUint64(out, uint64(len(part))), part...)
	}
	return sha256.Sum256(out)
}

// State is how far a question is.
type State string

// The states. A question that waits is approved, denied, or over; an approval is used, or
// over.
const (
	Waiting  State = "waiting"
	Approved State = "approved"
	Denied   State = "denied"
	Used     State = "used"
	Expired  State = "expired"
)

// Words are all states.
func (State) Words() []string {
	return []string{string(Waiting), string(Approved), string(Denied), string(Used), string(Expired)}
}

// The times and bounds of questions.
const (
	// Life is how long a question waits since it was last asked, and how long an answer holds.
	Life = 15 * time.Minute
	// Skew is by how much the clocks of instances may differ. An end that lies further ahead
	// than it can is from a clock that was wrong, and counts as over.
	Skew = time.Minute
	// MaxWaiting is how many questions wait, MaxOfActor how many of one actor, and
	// maxHeld how many calls wait for their answers, in one process.
	MaxWaiting = 1_000
	MaxOfActor = 100
	maxHeld    = 1_000
	// MaxArguments is how many bytes of the arguments a question shows.
	MaxArguments = 64 << 10
	// MaxReason is how long the reason of a denial is, in bytes.
	MaxReason = 2_000
)

// Question is a call that a person is asked about.
type Question struct {
	ID    string
	Key   Key
	State State
	Call  // without Arguments
	// Shown are the arguments as a person sees them: masked, and if Cut, the beginning of
	// them in a JSON string; null when the question is over for some time.
	Shown json.RawMessage
	Cut   bool

	Lane    string // that the call counts as
	Because string // why it does
	Rule    string // by which it is asked
	Reason  string // that the caller gives
	// Who asked, and from where.
	Actor, Source, Client, ClientVersion string
	Record                               string // that says that it is held

	Asked, Last time.Time // first and last
	Until       time.Time // it waits, or the answer holds
	Answered    time.Time // zero: not yet
	By, Via     string    // who has answered, and how
	Why         string    // of a denial
}

// At returns the state at a time: what is over is expired.
func (q *Question) At(now time.Time) State {
	if q.State != Used && (!now.Before(q.Until) || q.Until.After(now.Add(Life+Skew))) {
		return Expired
	}
	return q.State
}

// ByForm is how an answer has come that was given in a form of the calling client.
const ByForm = "client form"

// Answer is what a person has decided about a question.
type Answer struct {
	Approve bool
	Why     string // of a denial
	By, Via string
	At      time.Time
}

// Give answers a question that waits: the first answer counts. The problem is a CONFLICT
// that says what was decided.
func (q *Question) Give(a Answer) *problem.Problem {
	if state := q.At(a.At); state != Waiting {
		return q.decided(state)
	}
	q.State, q.Why = Denied, a.Why
	if a.Approve {
		q.State, q.Why = Approved, ""
	}
	q.By, q.Via, q.Answered, q.Until = a.By, a.Via, a.At, a.At.Add(Life)
	return nil
}

func (q *Question) decided(state State) *problem.Problem {
	what := "is over: nobody has answered in time"
	switch {
	case state == Used:
		what = "was approved by " + q.By + ", and the call was made"
	case q.State == Denied:
		what = "was denied by " + q.By
	case q.State == Approved:
		what = "was approved by " + q.By
	case !q.Answered.IsZero():
		what = "was answered by " + q.By + ", and is over"
	}
	return problem.Newf(problem.Conflict, "The question %s %s.", q.ID, what).
		WithHint("The first answer counts. If the call is made again, it is asked about again.").With("state", string(state))
}

// TooMany is that no further question waits.
func TooMany() *problem.Problem {
	return problem.Newf(problem.Overloaded, "Too many calls wait for a person: at most %d of one client, and %d in all.", MaxOfActor, MaxWaiting).
		WithHint("Ask the user to answer those that wait, in the UI or with `mcpproxy pending list`; then call again.")
}
