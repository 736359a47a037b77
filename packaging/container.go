package main

import (
	"bytes"
	"encoding/pem"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the ID of the user that runs the container.
const nobody = 65532

// rootFS writes the root file system of a container: the program, an account, the certificates of authorities, and a
// data directory whose configuration requires a key from every client.
func (r *release) rootFS(t target, program []byte, shared []file) error {
	files := []file{
		{name: "usr/bin/mcpproxy", mode: 0o755, data: program},
		{name: "etc/passwd", mode: 0o644, data: []byte("mcpproxy:x:65532:65532::/data:/usr/bin/mcpproxy\n")},
		{name: "etc/group", mode: 0o644, data: []byte("mcpproxy:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "tmp/", mode: 0o1777},
		{name: "data/", mode: 0o700, uid: nobody},
		{name: "data/mcp_config.json", mode: 0o600, uid: nobody, data: []byte("{\n  // others reach a container's ports, and so everybody needs a key\n  \"listen\": \"0.0.0.0:8080\",\n  \"require_mcp_auth\": true\n}\n")},
	}
	for _, f := range shared {
		if f.name == "LICENSE" || f.name == "THIRD_PARTY_LICENSES" {
			files = append(files, file{name: "usr/share/licenses/mcpproxy/" + f.name, mode: f.mode, data: f.data})
		}
	}
	data, err := tarball(slices.Clone(files), r.Date)
	if err != nil {
		return err
	}
	return r.write(r.stem(t)+"_rootfs.tar.gz", data)
}

// authorities returns the certificates that browsers trust without conditions, because a file cannot express
// conditions.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a write to a bytes.Buffer does not fail
		}
	}
	return out.Bytes()
}
