package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

func (d *Doc) object() *hujson.Object { return d.root.Value.(*hujson.Object) }

// name returns a member's decoded name.
func name(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// index returns where the member that counts stands, the last of its name, or -1.
func index(o *hujson.Object, key string) int {
	if o == nil {
		return -1
	}
	for i, m := range slices.Backward(o.Members) {
		if name(m) == key {
			return i
		}
	}
	return -1
}

// member returns a member's value, nil where there is none.
func member(o *hujson.Object, key string) hujson.ValueTrimmed {
	if i := index(o, key); i >= 0 {
		return o.Members[i].Value.Value
	}
	return nil
}

// child returns the object that is a member of o, made when it is missing. depth is its member's indentation.
func (d *Doc) child(o *hujson.Object, key string, depth int) (*hujson.Object, error) {
	switch v := member(o, key).(type) {
	case nil:
		made := &hujson.Object{}
		d.set(o, key, hujson.Value{Value: made}, depth)
		return made, nil
	case *hujson.Object:
		return v, nil
	}
	return nil, fmt.Errorf("%q is not an object: mend it by hand first", key)
}

// list returns the array that is a member of o, made when it is missing.
func (d *Doc) list(o *hujson.Object, key string, depth int) (*hujson.Array, error) {
	switch v := member(o, key).(type) {
	case nil:
		made := &hujson.Array{}
		d.set(o, key, hujson.Value{Value: made}, depth)
		return made, nil
	case *hujson.Array:
		return v, nil
	}
	return nil, fmt.Errorf("%q is not a list: mend it by hand first", key)
}

// set replaces a member's value or adds the member at the end, laid out like the one before it.
func (d *Doc) set(o *hujson.Object, key string, v hujson.Value, depth int) {
	d.edited = true
	if i := index(o, key); i >= 0 {
		o.Members[i].Value.Value = v.Value
		return
	}
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: v}
	if d.nl != "" || spaced(o) {
		m.Value.BeforeExtra = hujson.Extra(" ")
	}
	if n := len(o.Members); n > 0 {
		m.Name.BeforeExtra = bytes.Clone(o.Members[n-1].Name.BeforeExtra)
	} else {
		m.Name.BeforeExtra, o.AfterExtra = d.layout(depth)
	}
	o.Members = append(o.Members, m)
}

// push adds an element at the end of a list, laid out like the one before it.
func (d *Doc) push(a *hujson.Array, v hujson.Value, depth int) {
	d.edited = true
	if n := len(a.Elements); n > 0 {
		v.BeforeExtra = bytes.Clone(a.Elements[n-1].BeforeExtra)
	} else {
		v.BeforeExtra, a.AfterExtra = d.layout(depth)
	}
	a.Elements = append(a.Elements, v)
}

// layout returns what stands in front of the first item of a container and behind it.
func (d *Doc) layout(depth int) (before, after hujson.Extra) {
	if d.nl == "" {
		return nil, nil
	}
	return hujson.Extra(d.nl + strings.Repeat(d.unit, depth)), hujson.Extra(d.nl + strings.Repeat(d.unit, depth-1))
}

// spaced reports whether the object's members have white space behind their colons.
func spaced(o *hujson.Object) bool {
	return len(o.Members) > 0 && len(o.Members[len(o.Members)-1].Value.BeforeExtra) > 0
}

// remove takes a member out, all of its name, and reports whether it was there.
func (d *Doc) remove(o *hujson.Object, key string) bool {
	found := false
	for i := index(o, key); i >= 0; i = index(o, key) {
		if i == len(o.Members)-1 && i > 0 {
			o.Members[i-1].Value.AfterExtra = nil // in a last value, white space stands for a trailing comma
		}
		o.Members = slices.Delete(o.Members, i, i+1)
		if len(o.Members) == 0 {
			o.AfterExtra = nil
		}
		found, d.edited = true, true
	}
	return found
}

func removeElement(a *hujson.Array, i int) {
	if i == len(a.Elements)-1 && i > 0 {
		a.Elements[i-1].AfterExtra = nil // in a last value, white space stands for a trailing comma
	}
	a.Elements = slices.Delete(a.Elements, i, i+1)
	if len(a.Elements) == 0 {
		a.AfterExtra = nil
	}
}

// value lays out a new value whose first line is indented depth times.
func (d *Doc) value(v any, depth int) hujson.Value {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if d.nl != "" {
		enc.SetIndent(strings.Repeat(d.unit, depth), d.unit)
	}
	if err := enc.Encode(v); err != nil {
		panic(err) // strings, numbers and lists of them marshal
	}
	laid := bytes.ReplaceAll(bytes.TrimSpace(text.Bytes()), []byte("\n"), []byte(d.nl))
	parsed, err := hujson.Parse(laid)
	if err != nil {
		panic(err)
	}
	return parsed
}
