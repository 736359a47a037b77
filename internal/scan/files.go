package scan

import (
	"bytes"
	"strings"
)

// secretFiles are ends of paths of files that hold credentials.
var secretFiles = strings.Fields(`/.ssh .ssh/ id_rsa id_ed25519 id_dsa id_ecdsa authorized_keys known_hosts /etc/passwd /etc/shadow /etc/sudoers
	.aws/ .aws .env .netrc .npmrc .pypirc .git-credentials .gitconfig .bash_history .zsh_history .kube/config .docker/config.json
	mcp.json mcp_config.json claude_desktop_config.json .cursor/ .claude/ .gnupg .pgpass credentials.json wallet.dat keychain-db
	.config/gcloud application_default_credentials.json secrets.json secrets.yaml secrets.yml login.keychain /proc/self/environ
	.vault-token .bitcoin .electrum config/hub .pem .p12 .pfx .ovpn .kdbx shadow.bak`)

// chunkKind says what an address or path is; 0 when it is neither.
func chunkKind(c []byte) wordKind {
	for _, scheme := range []string{"http://", "https://", "ftp://", "ws://", "wss://", "hxxp://", "hxxps://"} {
		if bytes.HasPrefix(c, []byte(scheme)) && len(c) > len(scheme) {
			return isURL
		}
	}
	if at := bytes.IndexByte(c, '@'); at > 0 && bytes.IndexByte(c[at:], '.') > 1 {
		return isEmail
	}
	if isSecretPath(c) {
		return isSecretFile
	}
	if len(c) > 2 && (c[0] == '/' && isWordByte(c[1]) || c[0] == '~' && c[1] == '/') && bytes.IndexByte(c[1:], '/') > 0 {
		return isPath
	}
	return 0
}

// certain are parts of paths that name such a file wherever they stand.
var certain = strings.Fields(`/.ssh/id_ .aws/credentials /etc/passwd /etc/shadow .cursor/mcp.json claude_desktop_config.json .kube/config`)

func isSecretPath(c []byte) bool {
	for _, f := range certain {
		if bytes.Contains(c, []byte(f)) {
			return true
		}
	}
	for _, f := range secretFiles {
		if strings.HasSuffix(f, "/") {
			if bytes.Contains(c, []byte(f)) {
				return true
			}
		} else if bytes.HasSuffix(c, []byte(f)) {
			rest := len(c) - len(f)
			if rest == 0 || f[0] == '/' || f[0] == '.' && (c[rest-1] == '/' || f == ".pem" || f == ".p12" || f == ".pfx" || f == ".kdbx") || c[rest-1] == '/' || c[rest-1] == '.' {
				return true
			}
		}
	}
	return false
}
