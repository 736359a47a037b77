package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// deviceGrant is the grant type of the device flow (RFC 8628).
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// Times of the device flow. RFC 8628 sets the first two.
const (
	devicePollInterval = 5 * time.Second
	deviceSlowDown     = 5 * time.Second
	minDevicePoll      = time.Second
	maxDevicePoll      = time.Minute
)

// maxUserCode limits the length of a user code in characters.
const maxUserCode = 60

// deviceAuthorization is the response of a device authorization endpoint.
type deviceAuthorization struct {
	DeviceCode string          `json:"device_code"`
	UserCode   string          `json:"user_code"`
	URI        string          `json:"verification_uri"`
	Complete   string          `json:"verification_uri_complete"`
	Lifetime   json.RawMessage `json:"expires_in"` // seconds
	Interval   json.RawMessage `json:"interval"`   // seconds
	Error      string          `json:"error"`
}

// authorizeDevice starts the device flow for the login.
func (w *webClient) authorizeDevice(ctx context.Context, l *pendingLogin) (*deviceAuthorization, error) {
	resp, err := w.postForm(ctx, l.discovery.as.DeviceAuthorization, &l.issued.Client, formParams{
		"scope": strings.Join(l.scopes, " "), "resource": l.discovery.resource,
	})
	if err != nil {
		return nil, err
	}
	d := &deviceAuthorization{}
	if err := w.decodeResponse(resp, l.discovery.as.DeviceAuthorization, d, &d.Error); err != nil {
		return nil, err
	}
	if d.DeviceCode == "" || len(d.DeviceCode) > maxToken || d.UserCode == "" || len(d.UserCode) > maxUserCode || sanitizeErrorCode(d.UserCode) != d.UserCode {
		return nil, errors.New("the authorization server issues no usable device code")
	}
	for _, page := range []string{d.URI, d.Complete} {
		if page == "" && page != d.URI {
			continue
		}
		u, err := url.Parse(page)
		if err == nil {
			err = w.guard.checkURL(u)
		}
		if err != nil || strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, errors.New("the page of the authorization server for the device code is not a usable URL")
		}
	}
	return d, nil
}

// pollDevice polls for the token until the user has answered.
func (w *webClient) pollDevice(ctx context.Context, l *pendingLogin) (*tokenResponse, error) {
	pause := devicePollInterval
	if seconds := parseLifetime(l.device.Interval); seconds > 0 {
		pause = min(max(seconds, minDevicePoll), maxDevicePoll)
	}
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		t, err := w.requestToken(ctx, l.discovery.as.Token, &l.issued.Client, formParams{
			"grant_type": deviceGrant, "device_code": l.device.DeviceCode, "resource": l.discovery.resource,
		})
		var refused *oauthError
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &refused):
			pause = min(2*pause, maxDevicePoll) // RFC 8628, 3.5: less often while it is not available
		case refused.code == "authorization_pending":
		case refused.code == "slow_down":
			pause = min(pause+deviceSlowDown, maxDevicePoll)
		default:
			return nil, fmt.Errorf("the device login was not completed: %w", err)
		}
	}
}
