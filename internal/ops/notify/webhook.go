package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

const (
	postTimeout = 10 * time.Second // limit of one request
	maxAnswer   = 64 << 10         // bytes of an answer that are read
)

// Headers of a signed request. The signature is "sha256=" and the HMAC-SHA256, in hexadecimal, of the timestamp, a dot
// and the body.
const (
	timestampHeader = "MCPProxy-Timestamp"
	signatureHeader = "MCPProxy-Signature"
)

// sign returns the signature of a body.
func sign(secret, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(timestamp + "."))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// receiverName returns the name of a webhook in messages: its number and its host.
func receiverName(w config.Webhook, index int) string {
	name := fmt.Sprintf("webhook %d", index+1)
	if u, err := url.Parse(w.URL); err == nil && u.Host != "" {
		name += " (" + u.Hostname() + ")"
	}
	return name
}

// retryError is the error of a request that may succeed later.
type retryError struct{ error }

// deliver sends a message to a webhook. After a failure that may pass, it tries again after each of the pauses. Its
// error contains no secret.
func (n *Notifier) deliver(ctx context.Context, w config.Webhook, m Message, pauses []time.Duration) error {
	body, err := encodeMessage(m, w.Format)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := n.post(ctx, w, body)
		var again retryError
		if !errors.As(err, &again) || try == len(pauses) {
			return err
		}
		if !sleep(ctx, pauses[try]) {
			return ctx.Err()
		}
	}
}

// post sends one request.
func (n *Notifier) post(ctx context.Context, w config.Webhook, body []byte) error {
	w, err := w.ResolveSecrets(n.Secret)
	if err != nil {
		return err
	}
	u, err := url.Parse(w.URL)
	if err != nil {
		return errors.New("its url is invalid")
	}
	// A new client for each request: notifications are rare, and no connection stays open.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialpolicy.ForHost(u.Hostname(), w.AllowPrivate).Dial,
		TLSHandshakeTimeout: postTimeout, MaxResponseHeaderBytes: maxAnswer, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, Timeout: postTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its url is invalid")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "mcpproxy/"+n.Version)
	if w.Secret != "" {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		r.Header.Set(timestampHeader, at)
		r.Header.Set(signatureHeader, sign(w.Secret, at, body))
	}
	answer, err := client.Do(r)
	if err != nil {
		return toPostError(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // the status says whether it was accepted
	switch {
	case answer.StatusCode/100 == 2:
		return nil
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500:
		return retryError{fmt.Errorf("it answers with HTTP status %d", answer.StatusCode)}
	}
	return fmt.Errorf("it answers with HTTP status %d", answer.StatusCode)
}

// toPostError removes the URL, which may be a secret, from the error of a request.
func toPostError(ctx context.Context, err error) error {
	var forbidden *dialpolicy.AddressNotAllowedError
	var with *url.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &forbidden):
		return forbidden
	case errors.As(err, &with) && with.Timeout():
		return retryError{fmt.Errorf("it does not answer within %v", postTimeout)}
	case errors.As(err, &with):
		return retryError{errors.New(problem.ClipName(with.Err.Error()))} // it may quote the receiver
	}
	return retryError{errors.New("it cannot be reached")}
}

// encodeMessage returns the body of a request in a format.
func encodeMessage(m Message, format config.WebhookFormat) ([]byte, error) {
	switch format {
	case config.WebhookSlack:
		return wirejson.MarshalWithoutHTMLEscape(slackMessage{m.Text + "\n<" + m.Link + "|Open MCPProxy>"})
	case config.WebhookTeams:
		card := teamsCard{Type: "AdaptiveCard", Version: "1.4", Actions: []teamsAction{{"Action.OpenUrl", "Open MCPProxy", m.Link}}}
		for line := range strings.SplitSeq(m.Text, "\n") {
			card.Body = append(card.Body, teamsBlock{"RichTextBlock", []teamsText{{"TextRun", line}}})
		}
		return wirejson.MarshalWithoutHTMLEscape(teamsMessage{"message", []teamsAttachment{{"application/vnd.microsoft.card.adaptive", card}}})
	}
	return wirejson.MarshalWithoutHTMLEscape(m)
}

// slackMessage is the body of a request to an incoming webhook of Slack.
type slackMessage struct {
	Text string `json:"text"`
}

// The body of a request to a workflow of Microsoft Teams: a message with an Adaptive Card. A TextRun is not
// interpreted as Markdown.
type (
	teamsMessage struct {
		Type        string            `json:"type"`
		Attachments []teamsAttachment `json:"attachments"`
	}
	teamsAttachment struct {
		ContentType string    `json:"contentType"`
		Content     teamsCard `json:"content"`
	}
	teamsCard struct {
		Type    string        `json:"type"`
		Version string        `json:"version"`
		Body    []teamsBlock  `json:"body"`
		Actions []teamsAction `json:"actions"`
	}
	teamsBlock struct {
		Type    string      `json:"type"`
		Inlines []teamsText `json:"inlines"`
	}
	teamsText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	teamsAction struct {
		Type  string `json:"type"`
		Title string `json:"title"`
		URL   string `json:"url"`
	}
)
