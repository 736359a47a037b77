package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// problemDocument is the JSON form of a problem.Problem in a response.
type problemDocument struct {
	Type       string          `json:"type" format:"uri" doc:"The URN of the error: urn:mcpproxy:problem: followed by the code in lower case, with dashes."`
	Title      string          `json:"title" doc:"The title of the error. Each code has one title."`
	Status     int             `json:"status" doc:"The HTTP status."`
	Detail     string          `json:"detail" doc:"The error message."`
	Code       problem.Code    `json:"code" doc:"The error code. Programs should use this field to tell errors apart."`
	Hint       string          `json:"hint,omitempty" doc:"The recommended action. Absent if there is none."`
	Details    problem.Details `json:"details,omitempty" doc:"Structured details of the error, such as parameter, value and allowed."`
	ActivityID string          `json:"activity_id,omitempty" doc:"The id of the activity record of the rejected or failed call. Absent if there is no record."`
}

// newProblemDocument converts an error. It includes the record ID if the failure was recorded.
func newProblemDocument(err error) problemDocument {
	p := problem.From(err)
	d := problemDocument{
		Type:   "urn:mcpproxy:problem:" + strings.ToLower(strings.ReplaceAll(string(p.Code), "_", "-")),
		Title:  codeTitle(p.Code),
		Status: p.Code.HTTPStatus(),
		Detail: p.Message, Code: p.Code, Hint: p.Hint, Details: p.Details,
	}
	var r *recordedError
	if errors.As(err, &r) {
		d.ActivityID = r.activityID
	}
	return d
}

// toProblem converts the document to a problem. It returns nil if d is nil.
func (d *problemDocument) toProblem() error {
	if d == nil {
		return nil
	}
	p := problem.New(d.Code, d.Detail, d.Hint)
	p.Details = d.Details
	if d.ActivityID != "" {
		p.With("activity_id", d.ActivityID)
	}
	return p
}

// recordedError is an error of a call, with the ID of the call's record.
type recordedError struct {
	error
	activityID string
}

// Unwrap returns the problem.
func (r *recordedError) Unwrap() error { return r.error }

// codeTitle returns the title of a code, such as "Server mismatch".
func codeTitle(c problem.Code) string {
	words := strings.ToLower(strings.ReplaceAll(string(c), "_", " "))
	return strings.ToUpper(words[:1]) + words[1:]
}

func writeProblem(w http.ResponseWriter, err error) { newProblemDocument(err).writeTo(w) }

func (d problemDocument) writeTo(w http.ResponseWriter) {
	body, err := wirejson.MarshalWithoutHTMLEscape(d)
	if err != nil {
		// Details that cannot be encoded are a bug, but the other members are still useful.
		d.Details = nil
		body, _ = wirejson.MarshalWithoutHTMLEscape(d)
	}
	if d.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(d.Status)
	_, _ = w.Write(append(body, '\n'))
}

// WriteForbidden answers a request whose Host or Origin was rejected, with the reason.
func WriteForbidden(w http.ResponseWriter, why string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	writeProblem(w, problem.Newf(problem.Forbidden, "Forbidden: %s.", why).
		WithHint("Use 127.0.0.1 or localhost, from a program or from MCPProxy's own pages. Other hosts must be in trusted_hosts of the configuration."))
}

// newMethodNotAllowed returns the document for a method that the path does not support. No problem code has this HTTP
// status.
func newMethodNotAllowed(method, path string, allowed []string) problemDocument {
	d := newProblemDocument(problem.Newf(problem.InvalidRequest, "%s is not possible at %s.", method, path).
		WithHint(fmt.Sprintf("Use %s.", joinOr(allowed))).With("allowed", allowed))
	d.Status = http.StatusMethodNotAllowed
	return d
}
