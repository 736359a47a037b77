package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAppLink(t *testing.T) {
	for meta, want := range map[string]AppLink{
		`{}`: {}, `[]`: {}, `{"ui":7}`: {}, `{"ui":{"resourceUri":"https://x"}}`: {}, `{"ui":{"resourceUri":7}}`: {},
		`{"ui":{"resourceUri":"ui:\/\/a"}}`:                                {URI: "ui://a"},
		`{"ui/resourceUri":"ui://b"}`:                                      {URI: "ui://b"},
		`{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://b"}`:        {URI: "ui://a"},
		`{"ui":{"resourceUri":"ui://` + strings.Repeat("x", 3_000) + `"}}`: {},
		`{"ui":{"visibility":["app"]}}`:                                    {HiddenFromModel: true},
		`{"ui":{"visibility":["model"]}}`:                                  {HiddenFromApps: true},
		`{"ui":{"visibility":["app","model","x"]}}`:                        {},
		`{"ui":{"visibility":[7]}}`:                                        {HiddenFromModel: true, HiddenFromApps: true},
		`{"ui":{"visibility":"app"}}`:                                      {},
	} {
		d, err := ParseDefinition("s", json.RawMessage(`{"name":"x","_meta":`+meta+`}`))
		if err != nil || d.App != want {
			t.Errorf("%.100s: %+v %v", meta, d.App, err)
		}
	}
}
