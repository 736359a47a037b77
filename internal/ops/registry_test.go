package ops

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// TestRegistryOutage: if a registry does not answer, the entry of the same name in the next one is not taken, unless the
// user names that registry. If a registry does not have the entry, the next one is asked.
func TestRegistryOutage(t *testing.T) {
	status := http.StatusInternalServerError
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer first.Close()
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"server":{"name":"a/notes","version":"1.0.0"}}`))
	}))
	defer second.Close()
	w := newAdminWorld(t, func(c *config.Config) {
		c.Registries = map[string]string{"first": first.URL, "second": second.URL}
	})
	r := NewRegistryOperations(w.gateway.Admin, nil, t.TempDir())
	_, err := r.Show(t.Context(), adminPerson, RegistryEntryRef{Name: "a/notes"})
	if p := problem.From(err); p == nil || p.Code != problem.UpstreamError || !strings.Contains(p.Message, "'first'") {
		t.Errorf("an outage of the first registry: %v", err)
	}
	_, err = r.Add(t.Context(), adminPerson, AddFromRegistryRequest{Entry: "a/notes"})
	if p := problem.From(err); p == nil || p.Code != problem.UpstreamError || !strings.Contains(p.Message, "'first'") {
		t.Errorf("an outage of the first registry: %v", err)
	}
	show := func(from string) {
		t.Helper()
		if got, err := r.Show(t.Context(), adminPerson, RegistryEntryRef{Name: "a/notes", Registry: from}); err != nil || got.Servers[0].Registry != "second" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	show("second")
	status = http.StatusNotFound
	show("")
}

// TestShowValues: fixed values and references are shown, and values that look like secrets are masked.
func TestShowValues(t *testing.T) {
	all := map[string]string{"X-Fixed": "eu", "Authorization": "Bearer ${keyring:TOKEN}", "X-Api-Key": "${env:KEY}", "Api-Token": "${env:KEY}0123456789abcdef"}
	want := []string{"Authorization: Bearer ${keyring:TOKEN}", "X-Api-Key: ${env:KEY}", "X-Fixed: eu"}
	if got := showValues(all, ": "); !strings.HasPrefix(got[0], "Api-Token: [masked ") || !slices.Equal(got[1:], want) {
		t.Errorf("%q", got)
	}
}
