package oauth

// Settings are what the configuration says about the login to one server.
type Settings struct {
	ClientID            string // of a client that was registered by hand
	ClientSecret        string
	ClientMetadataURL   string // of a client metadata document
	AuthorizationServer string // the issuer to use, of those that the server names
	Scopes              []string
	RedirectPort        int // of the callback; 0 = a free one
}

// Target is a server that may ask for a login.
type Target struct {
	Name         string
	URL          string
	AllowPrivate bool // documents and endpoints may be on private addresses
	Settings     Settings
}
