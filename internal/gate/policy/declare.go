package policy

import (
	"encoding/json"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
)

// RawParameters returns the declaration as given, as an object of the parameters; nil if there is none.
func (d *DeclaredIntent) RawParameters() (letter json.RawMessage) {
	for i, value := range d.given {
		if value != nil {
			letter = wirejson.SetMember(letter, parameters[i], value)
		}
	}
	return letter
}

// AddParameter adds a parameter of a call to the declaration, and reports whether it is part of a declaration. These
// parameters are intent and the flat intent_operation_type, intent_data_sensitivity and intent_reason. The value must
// pass wirejson.Check. All endpoints use this function, so that they accept the same declarations.
//
// It tolerates frequent mistakes of models: an intent that is a string is used as the operation type, or parsed as
// the JSON text of the object. Null and empty strings count as missing. Values that are given twice must be equal.
func (d *DeclaredIntent) AddParameter(name string, value []byte) bool {
	switch name {
	case "intent":
		d.addIntent(value)
	case "intent_operation_type":
		d.addOperation(value)
	case "intent_data_sensitivity":
		d.addSensitivity(name, value)
	case "intent_reason":
		d.addReason(name, value)
	default:
		return false
	}
	d.given[slices.Index(parameters[:], name)] = value
	return true
}

func (d *DeclaredIntent) addIntent(value []byte) {
	text, isText := wirejson.String(value)
	switch object := []byte(text); {
	case wirejson.Kind(value) == 'n' || isText && text == "":
		return
	case isText && wirejson.Kind(object) == '{' && wirejson.Check(object, wirejson.Limits{}) == nil:
		value = object
	case isText:
		d.Present = true
		d.addOperation(value)
		return
	}
	d.Present = true
	err := wirejson.EachMember(value, func(name, value []byte) error {
		switch string(name) {
		case "operation_type", "intent_operation_type":
			d.addOperation(value)
		case "data_sensitivity":
			d.addSensitivity("intent.data_sensitivity", value)
		case "intent_data_sensitivity":
			d.addSensitivity("intent.intent_data_sensitivity", value)
		case "reason":
			d.addReason("intent.reason", value)
		case "intent_reason":
			d.addReason("intent.intent_reason", value)
		}
		return nil
	})
	if err != nil {
		d.Malformed = IntentNotObject
	}
}

func (d *DeclaredIntent) addOperation(value []byte) {
	said, ok := wirejson.String(value)
	switch {
	case wirejson.Kind(value) == 'n' || ok && said == "":
		return
	case !ok:
		said = string(value) // no operation has such a name
	}
	if d.HasOperation && said != d.OperationType {
		d.Malformed = FieldsDifferText("intent.operation_type", "intent_operation_type")
		return
	}
	d.HasOperation, d.OperationType = true, said
}

func (d *DeclaredIntent) addSensitivity(from string, value []byte) {
	d.HasSensitivity = true
	d.DataSensitivity = d.mergedText(from, "data_sensitivity", d.DataSensitivity, value)
}

func (d *DeclaredIntent) addReason(from string, value []byte) {
	d.HasReason = true
	d.Reason = d.mergedText(from, "reason", d.Reason, value)
}

// mergedText returns the text of a field after checking it against an earlier one.
func (d *DeclaredIntent) mergedText(from, fact, before string, value []byte) string {
	said, ok := wirejson.String(value)
	switch {
	case wirejson.Kind(value) == 'n':
		return before
	case !ok:
		d.Malformed = FieldNotStringText(from)
		return before
	case before == "":
		return said
	case said != "" && said != before:
		d.Malformed = FieldsDifferText("intent."+fact, "intent_"+fact)
	}
	return before
}
