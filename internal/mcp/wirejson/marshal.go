package wirejson

import (
	"bytes"
	"encoding/json"
)

// MarshalWithoutHTMLEscape is like json.Marshal, but without HTML escapes.
func MarshalWithoutHTMLEscape(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
