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
	return decodeObjects(d, v, path, "webhook", maxWebhooks, (*Webhook).keys, "url", `{"url": "https://example.com/hook"}`)
}

// decodeObjects decodes a list of objects in file order. Each object must have the required key, if there is one.
func decodeObjects[T any](d *decoder, v hujson.Value, path, what string, most int, keysOf func(*T) []configKey, required, example string) (any, any) {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		expected := "a list of objects"
		if required != "" {
			expected += " with " + required
		}
		d.reportWrongType(v, path, expected)
		return nil, nil
	}
	if len(array.Elements) > most {
		d.addMistake(v.StartOffset, path, fmt.Sprintf("there are %d %ss, and at most %d are allowed", len(array.Elements), what, most), "remove some")
		return nil, nil
	}
	resolved, raw := []T{}, []T{}
	for i, e := range array.Elements {
		at := fmt.Sprintf("%s[%d]", path, i)
		var one, shown T
		setDefaults(keysOf(&one))
		setDefaults(keysOf(&shown))
		members := d.decodeObject(e, at, keysOf(&one), keysOf(&shown))
		if _, ok := members[required]; !ok && required != "" && e.Value.Kind() == '{' {
			d.addMistake(e.StartOffset, at, "the "+what+" has no "+required, "for example "+example)
		}
		resolved, raw = append(resolved, one), append(raw, shown)
	}
	return resolved, raw
}
