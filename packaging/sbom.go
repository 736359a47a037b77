package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A bill of materials in CycloneDX 1.6.
type (
	bill struct {
		Schema     string        `json:"$schema"`
		Format     string        `json:"bomFormat"`
		Spec       string        `json:"specVersion"`
		Serial     string        `json:"serialNumber"`
		Version    int           `json:"version"`
		Metadata   billMetadata  `json:"metadata"`
		Components []billPart    `json:"components"`
		Depends    []billDepends `json:"dependencies"`
	}
	billMetadata struct {
		Timestamp string   `json:"timestamp"`
		Component billPart `json:"component"`
	}
	billPart struct {
		Type     string        `json:"type"`
		Ref      string        `json:"bom-ref"`
		Name     string        `json:"name"`
		Version  string        `json:"version"`
		Hashes   []billHash    `json:"hashes,omitempty"`
		Licences []billLicence `json:"licenses"`
		PURL     string        `json:"purl,omitempty"`
	}
	billHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	billLicence struct {
		Expression string `json:"expression"`
	}
	billDepends struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// bill writes the bill of materials of a program: the modules in its build information, and the npm packages of the web
// UI. A module without a licence in the notices is an error, so that the notices are complete.
func (r *release) bill(t target, program []byte, n notices) error {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	used := []string{goPURL("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		used = append(used, goPURL(m.Path, m.Version))
	}
	for purl := range n {
		if strings.HasPrefix(purl, "pkg:npm/") {
			used = append(used, purl)
		}
	}
	slices.Sort(used)
	hash := sha256.Sum256(program)
	id := hash[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of one's own making
	main := billPart{
		Type: "application", Ref: "mcpproxy", Name: "mcpproxy", Version: r.Version, Licences: []billLicence{{"MIT"}},
		Hashes: []billHash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))}},
	}
	b := bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: billMetadata{r.Date.Format(time.RFC3339), main},
		Depends:  []billDepends{{main.Ref, used}},
	}
	for _, purl := range used {
		c, ok := n[purl]
		if !ok {
			return fmt.Errorf("the program for %v has %s in it, whose licence is not among those that were found", t, purl)
		}
		b.Components = append(b.Components, billPart{Type: "library", Ref: purl, Name: c.name, Version: cmp.Or(c.version, "unknown"), Licences: []billLicence{{c.licence}}, PURL: purl})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return r.write(r.stem(t)+".cdx.json", append(text, '\n'))
}
