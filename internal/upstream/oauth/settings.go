package oauth

// Settings is the OAuth configuration of one server.
type Settings struct {
	ClientID            string // of a preregistered client
	ClientSecret        string
	ClientMetadataURL   string // of a client metadata document
	AuthorizationServer string // the issuer to use, among those of the server
	Scopes              []string
	RedirectPort        int // of the callback; 0 = a free one
}

// AccountTarget is a server that may require a login.
type AccountTarget struct {
	Name         string
	URL          string
	AllowPrivate bool // documents and endpoints may have private addresses
	Settings     Settings
}
