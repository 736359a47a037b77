package store

import (
	"strconv"
	"strings"
	"sync"
)

// pgChannel is the notification channel that the instances share.
const pgChannel = "mcpproxy"

// RemoteChanges are changes by other instances.
type RemoteChanges struct {
	All        bool            // the connection was lost for a while, so anything may have changed
	Servers    map[string]bool // servers with changed decisions; true if a launch was approved
	Tokens     bool
	Presence   bool     // a new statement or a changed anchor
	Questions  bool     // a changed question or lease
	Pause      bool     // calls were paused or resumed
	LogNotices []string // notifications for ReadRemoteCallEvents; nil if there are none
	LogMissed  bool     // there are more new records than LogNotices describes
}

// maxLogNotices is the maximum length of LogNotices.
const maxLogNotices = 256

// remoteChangeInbox collects remote changes until TakeRemoteChanges returns them.
type remoteChangeInbox struct {
	signal  chan struct{}
	mu      sync.Mutex // guards the field below
	pending RemoteChanges
}

func (n *remoteChangeInbox) merge(s RemoteChanges) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending.All, n.pending.Tokens, n.pending.LogMissed = n.pending.All || s.All, n.pending.Tokens || s.Tokens, n.pending.LogMissed || s.LogMissed || s.All
	n.pending.Questions, n.pending.Presence, n.pending.Pause = n.pending.Questions || s.Questions, n.pending.Presence || s.Presence, n.pending.Pause || s.Pause
	if n.pending.LogNotices = append(n.pending.LogNotices, s.LogNotices...); len(n.pending.LogNotices) > maxLogNotices {
		n.pending.LogNotices, n.pending.LogMissed = nil, true
	}
	for server, anew := range s.Servers {
		if n.pending.Servers == nil {
			n.pending.Servers = map[string]bool{}
		}
		n.pending.Servers[server] = n.pending.Servers[server] || anew
	}
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

// Payloads of notifications.
const (
	notifyLog       = "log " // instance, first key, key after the last, keys of ended records
	notifyTokens    = "tokens"
	notifyQuestions = "asks"
	notifyPresence  = "presence"
	notifyPause     = "pause"
	notifyServer    = "server " // true or false, a space, the name of the server
)

// addNotification adds the change that a notification describes. If a later version sent an unknown notification, it
// assumes that anything may have changed.
func (n *remoteChangeInbox) addNotification(payload string) {
	switch rest, isServer := strings.CutPrefix(payload, notifyServer); {
	case strings.HasPrefix(payload, notifyLog):
		n.merge(RemoteChanges{LogNotices: []string{payload}})
	case payload == notifyTokens:
		n.merge(RemoteChanges{Tokens: true})
	case payload == notifyPresence:
		n.merge(RemoteChanges{Presence: true})
	case payload == notifyPause:
		n.merge(RemoteChanges{Pause: true})
	case payload == notifyQuestions:
		n.merge(RemoteChanges{Questions: true})
	case isServer:
		anew, server, _ := strings.Cut(rest, " ")
		n.merge(RemoteChanges{Servers: map[string]bool{server: anew == strconv.FormatBool(true)}})
	default:
		n.merge(RemoteChanges{All: true})
	}
}

// maxNotificationBytes limits the size of a notification. The limit of the server is 8,000 bytes.
const maxNotificationBytes = 7000

// newLogNotification returns the payload for new records, and for stored records that have ended.
func newLogNotification(instance, from, next int64, ended []int64) string {
	payload := notifyLog
	for _, n := range append([]int64{instance, from, next}, ended...) {
		if payload = payload + strconv.FormatInt(n, 10) + " "; len(payload) > maxNotificationBytes {
			return notifyLog
		}
	}
	return payload
}

// newServerNotification returns the payload for changed decisions about a server. anew states whether its launch was
// approved.
func newServerNotification(server string, anew bool) string {
	return notifyServer + strconv.FormatBool(anew) + " " + server
}
