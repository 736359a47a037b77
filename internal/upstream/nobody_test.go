package upstream

import "encoding/json"

// nobody is Clients where there are none.
type nobody struct{}

func (nobody) Connected(*Connection)                 {}
func (nobody) Notified(string, json.RawMessage) bool { return false }
func (nobody) InUse() bool                           { return false }
func (nobody) End(EndScope)                          {}

func noClients(*Server) ClientSessions { return nobody{} }
