package config

import (
	"fmt"

	"github.com/tailscale/hujson"
)

// The events of notifications.
const (
	NotifyCallHeld       = "call.held"       // a call waits for approval
	NotifyDefinitionHeld = "definition.held" // a new or changed definition waits for approval
	NotifyLoginNeeded    = "login.needed"    // a server needs a login
)

// NotifyEvents returns the events of notifications.
func NotifyEvents() []string {
	return []string{NotifyCallHeld, NotifyDefinitionHeld, NotifyLoginNeeded}
}

// maxWebhooks limits the number of webhooks.
const maxWebhooks = 16

// decodeWebhooks decodes notify.webhooks in file order.
func (d *decoder) decodeWebhooks(v hujson.Value, path string) (any, any) {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		d.reportWrongType(v, path, "a list of objects with url")
		return nil, nil
	}
	if len(array.Elements) > maxWebhooks {
		d.addMistake(v.StartOffset, path, fmt.Sprintf("there are %d webhooks, and at most %d are allowed", len(array.Elements), maxWebhooks), "remove some")
		return nil, nil
	}
	resolved, raw := []Webhook{}, []Webhook{}
	for i, e := range array.Elements {
		at := fmt.Sprintf("%s[%d]", path, i)
		var w, shown Webhook
		setDefaults(w.keys())
		setDefaults(shown.keys())
		if members := d.decodeObject(e, at, w.keys(), shown.keys()); e.Value.Kind() == '{' {
			if _, ok := members["url"]; !ok {
				d.addMistake(e.StartOffset, at, "the webhook has no url", `for example {"url": "https://example.com/hook"}`)
			}
		}
		resolved, raw = append(resolved, w), append(raw, shown)
	}
	return resolved, raw
}
