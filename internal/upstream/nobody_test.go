package upstream

import "encoding/json"

// nobody implements ServerClients without clients.
type nobody struct{}

func (nobody) OnConnected(*Connection)                     {}
func (nobody) OnNotification(string, json.RawMessage) bool { return false }
func (nobody) InUse() bool                                 { return false }
func (nobody) OnNeedLearned()                              {}
func (nobody) EndSessions(SessionsToEnd)                   {}

func noClients(*Server) ServerClients { return nobody{} }
