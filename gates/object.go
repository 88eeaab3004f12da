package gates

// object holds the members of a JSON object that were asked for, by name; of repeated names the last.
type object map[string][]byte

// fields returns the members of these names, none where raw is no JSON object. What a model adds to its input besides
// costs no memory, however much it is.
func fields(raw []byte, names ...string) object {
	var o object
	err := spans(raw, func(name []byte, start, end int) {
		if wanted, ok := among(name, names); ok {
			if o == nil { // many an object in a list holds none of them
				o = make(object, len(names))
			}
			o[wanted] = raw[start:end:end]
		}
	})
	if err != nil {
		return nil
	}
	return o
}

// among returns the one of the names that is written so.
func among(written []byte, names []string) (name string, ok bool) {
	for _, name := range names {
		if isNamed(written, name) {
			return name, true
		}
	}
	return "", false
}

// isNamed reports whether a member's name, as it is written, is this one, which is valid text. It allocates nothing where there is no escape.
func isNamed(written []byte, name string) bool {
	if string(written[1:len(written)-1]) == name {
		return true
	}
	if len(written) <= len(name)+2 || len(written) > 6*len(name)+2 { // an escape writes a character as 2 to 6
		return false
	}
	text, _ := Text(written)
	return text == name
}

// text returns a member that is a string, else "".
func (o object) text(key string) string {
	s, _ := Text(o[key])
	return s
}

// edits calls visit for each object in the list "edits", with its members of these names.
func (o object) edits(visit func(edit object), names ...string) {
	_ = Elements(o["edits"], func(item []byte) { visit(fields(item, names...)) })
}
