package ask

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// maxSigned limits the arguments in a claim, in bytes; their digest is always included.
const maxSigned = 4 << 10

// CallClaim returns the claim that a user signs to approve a call: everything that the question shows, and the key of
// the call. The claim is computed again from the actual call when the approval is used, so a question that shows
// another call approves nothing.
func CallClaim(id string, until time.Time, q *Question) presence.Claim {
	shown, err := tool.CanonicalJSON(q.Shown) // the same for calls with the same key
	if err != nil {
		shown = q.Shown
	}
	sum := sha256.Sum256(shown)
	return presence.NewClaim("approve call", q.Call.ID.String(), "lane "+q.Lane, "arguments "+problem.ClipForDisplay(string(shown), maxSigned), "of "+strconv.Itoa(len(shown))+" bytes sha256:"+hex.EncodeToString(sum[:]),
		"key sha256:"+hex.EncodeToString(q.Key[:]), "id "+id, "until "+formatTime(until))
}

// LeaseClaim returns the claim that a user signs to create a lease.
func LeaseClaim(l *Lease) presence.Claim {
	lane := ""
	if l.Lane > 0 && int(l.Lane) <= len(auth.OperationLaneNames()) {
		lane = auth.OperationLaneNames()[l.Lane-1]
	}
	return presence.NewClaim("lease", l.Server, "tools "+l.Tools, "lane "+lane, fmt.Sprintf("%d calls", l.Calls), "client "+l.Client, "actor "+l.Actor,
		"from "+formatTime(l.Given), "until "+formatTime(l.Until), "configuration "+l.Revision, "id "+l.ID)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
