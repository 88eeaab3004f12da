package gates

import "encoding/json"

// object is a JSON object's members by name; of repeated names the last.
type object map[string][]byte

// fields returns the members of a JSON object, none where raw is not one.
func fields(raw []byte) object {
	o := object{}
	if err := Members(raw, func(key string, value []byte) { o[key] = value }); err != nil {
		return nil
	}
	return o
}

// text returns a member that is a string, else "".
func (o object) text(key string) string {
	s, _ := Text(o[key])
	return s
}

// texts returns a member that is a string, or the strings of a list; empty ones are left out.
func (o object) texts(key string) []string {
	if s := o.text(key); s != "" {
		return []string{s}
	}
	var texts []string
	for _, item := range o.list(key) {
		if s, _ := Text(item); s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// edits returns the objects of the list "edits".
func (o object) edits() []object {
	var edits []object
	for _, item := range o.list("edits") {
		edits = append(edits, fields(item))
	}
	return edits
}

func (o object) list(key string) []json.RawMessage {
	var list []json.RawMessage
	if len(o[key]) > 0 && o[key][0] == '[' {
		_ = json.Unmarshal(o[key], &list) // it fails where the list is too deep
	}
	return list
}

// tooDeep reports whether the member is a list that encoding/json does not read, because it is nested too deep.
func (o object) tooDeep(key string) bool {
	return len(o[key]) > 0 && o[key][0] == '[' && !json.Valid(o[key])
}
