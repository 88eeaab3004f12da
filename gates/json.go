package gates

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is wrapped by every error of [Members]: the text is not one JSON object.
var ErrSyntax = errors.New("not a JSON object")

// Members calls visit for each member of the JSON object in data, in order; key is the decoded name, value the raw
// text of the member's value and aliases data. Members that repeat a name are all visited, the last one counts, as in
// JavaScript's JSON.parse. White space around the object is allowed, anything else is not.
//
// The grammar is RFC 8259's, as encoding/json checks it, with one difference: there is no bound on nesting, because a
// tool call whose input is nested deeper than a parser likes must still be judged. Memory is one bit a level.
func Members(data []byte, visit func(key string, value []byte)) error {
	return spans(data, func(name []byte, start, end int) {
		key, _ := Text(name)
		visit(key, data[start:end:end])
	})
}

// spans is [Members] with the name as it is written, quotation marks included, and the value's place in data.
func spans(data []byte, visit func(name []byte, start, end int)) error {
	s := scanner{data: data}
	if err := s.object(visit); err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return nil
}

// Elements calls visit for each element of the JSON array in data, in order, as [Members] does for an object.
func Elements(data []byte, visit func(value []byte)) error {
	s := scanner{data: data}
	if err := s.array(visit); err != nil {
		return fmt.Errorf("not a JSON array: %w", err)
	}
	return nil
}

// Strings returns the text that value is, or each text in the list that it is, in order, and in lists in it, however deep;
// texts inside objects are passed over. value is one that [Members] or [Elements] gave.
func Strings(value []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		// Of lists in lists only the order counts, so their brackets are passed over as commas are: there is nothing to count.
		s := scanner{data: value}
		for s.space(); s.pos < len(value); s.space() {
			start := s.pos
			switch value[start] {
			case '[', ']', ',':
				s.pos++
			default:
				if s.value() != nil {
					return
				}
				if text, ok := Text(value[start:s.pos]); ok && !yield(text) {
					return
				}
			}
		}
	}
}

// Text decodes a JSON string as the client means it: lone surrogates and invalid UTF-8 become U+FFFD. ok is false when
// value is not a string.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return "", false
	}
	value = value[1 : len(value)-1]
	if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) { // as by the most are
		return string(value), true
	}
	return unescaped(value)
}

// unescaped decodes what stands between the quotation marks of a JSON string.
func unescaped(in []byte) (text string, ok bool) {
	var out strings.Builder
	out.Grow(len(in))
	for len(in) > 0 {
		if in[0] != '\\' {
			r, size := utf8.DecodeRune(in) // U+FFFD for each byte that is none of a character
			out.WriteRune(r)
			in = in[size:]
			continue
		}
		if len(in) < 2 {
			return "", false
		}
		if in[1] == 'u' {
			r, ok := codeUnit(in)
			if !ok {
				return "", false
			}
			in = in[6:]
			if low, ok := codeUnit(in); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				in = in[6:]
			}
			out.WriteRune(r) // U+FFFD for half a pair
			continue
		}
		c := escapes[in[1]]
		if c == 0 {
			return "", false
		}
		out.WriteByte(c)
		in = in[2:]
	}
	return out.String(), true
}

// escapes are the characters that a backslash and one letter stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// codeUnit reads the \uXXXX that text begins with.
func codeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		if !isHex(c) {
			return 0, false
		}
		unit = unit<<4 | rune(hexValue(c))
	}
	return unit, true
}

// scanner walks JSON text without recursion and without building values.
type scanner struct {
	data []byte
	pos  int
	// open has one bit for each container around pos inside the member's value, set for an object.
	open  []uint64
	depth int
}

func (s *scanner) object(visit func(name []byte, start, end int)) error {
	s.space()
	if !s.take('{') {
		return s.unexpected("'{'")
	}
	s.space()
	if s.take('}') {
		return s.end()
	}
	for {
		start := s.pos
		if err := s.str(); err != nil {
			return err
		}
		name := s.data[start:s.pos]
		if err := s.colon(); err != nil {
			return err
		}
		start = s.pos
		if err := s.value(); err != nil {
			return err
		}
		visit(name, start, s.pos)
		s.space()
		switch {
		case s.take('}'):
			return s.end()
		case s.take(','):
			s.space()
		default:
			return s.unexpected("',' or '}'")
		}
	}
}

func (s *scanner) array(visit func(value []byte)) error {
	s.space()
	if !s.take('[') {
		return s.unexpected("'['")
	}
	s.space()
	if s.take(']') {
		return s.end()
	}
	for {
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		visit(s.data[start:s.pos:s.pos])
		s.space()
		switch {
		case s.take(']'):
			return s.end()
		case s.take(','):
			s.space()
		default:
			return s.unexpected("',' or ']'")
		}
	}
}

// What may come next inside a value.
type expect uint8

const (
	aValue      expect = iota
	aValueOrEnd        // after '['
	aName              // after ',' in an object
	aNameOrEnd         // after '{'
	aColon             // after a name
	commaOrEnd         // after a value
)

var expectations = [...]string{"a value", "a value or ']'", "a name", "a name or '}'", "':'", "',' or the container's end"}

// value skips one value of any depth. It is one loop over local variables, because an input of 100 MB has to be
// through it well before the deadline, also when it is nothing but brackets.
func (s *scanner) value() error {
	data, i, next := s.data, s.pos, aValue
	object := false // whether the innermost open container is an object; s.open has those around it, too
	s.depth = 0
	for i < len(data) {
		c := data[i]
		ended := false
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case next == commaOrEnd && c == ',':
			i++
			if next = aValue; object {
				next = aName
			}
		case next == aColon && c == ':':
			i++
			next = aValue
		case c == '}' && object && (next == commaOrEnd || next == aNameOrEnd),
			c == ']' && !object && (next == commaOrEnd || next == aValueOrEnd):
			i++
			s.depth--
			object = s.depth > 0 && s.inObject()
			ended = true
		case next == aName || next == aNameOrEnd:
			if c != '"' {
				s.pos = i
				return s.unexpected(expectations[next])
			}
			s.pos = i
			if err := s.str(); err != nil {
				return err
			}
			i = s.pos
			next = aColon
		case next == aValue || next == aValueOrEnd:
			switch {
			case c == '[':
				i++
				object = false
				s.push(false)
				next = aValueOrEnd
			case c == '{':
				i++
				object = true
				s.push(true)
				next = aNameOrEnd
			default:
				s.pos = i
				if err := s.scalar(); err != nil {
					return err
				}
				i = s.pos
				ended = true
			}
		default:
			s.pos = i
			return s.unexpected(expectations[next])
		}
		if ended {
			if s.depth == 0 {
				s.pos = i
				return nil
			}
			next = commaOrEnd
		}
	}
	s.pos = i
	return s.unexpected(expectations[next])
}

// scalar skips a string, a number or a literal.
func (s *scanner) scalar() error {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case s.literal("true") || s.literal("false") || s.literal("null"):
		return nil
	}
	return s.unexpected("a value")
}

func (s *scanner) colon() error {
	s.space()
	if !s.take(':') {
		return s.unexpected("':'")
	}
	s.space()
	return nil
}

// plainByte marks the bytes that stand for themselves inside a string.
var plainByte = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// plainWord reports whether eight bytes in a row stand for themselves: none is below 0x20, a quotation mark or a backslash.
// To subtract that from each byte would set its highest bit.
func plainWord(w uint64) bool {
	const each, highest = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^each*'"', w^each*'\\'
	return ((w-each*0x20)&^w|(quote-each)&^quote|(backslash-each)&^backslash)&highest == 0
}

// str skips a string. Most of a long input is text, hence the loop over words before the one over bytes.
func (s *scanner) str() error {
	if !s.take('"') {
		return s.unexpected("a string")
	}
	data, i := s.data, s.pos
	for {
		for len(data)-i >= 8 && plainWord(binary.LittleEndian.Uint64(data[i:])) {
			i += 8
		}
		for i < len(data) && plainByte[data[i]] {
			i++
		}
		if i+1 >= len(data) || data[i] != '\\' {
			break
		}
		if escapes[data[i+1]] != 0 {
			i += 2
		} else if _, ok := codeUnit(data[i:]); ok {
			i += 6
		} else {
			break
		}
	}
	s.pos = i
	if s.take('"') {
		return nil
	}
	if !s.take('\\') {
		return s.unexpected("the string's end")
	}
	if !s.take('u') {
		return s.unexpected("an escape")
	}
	for isHex(s.peek()) {
		s.pos++
	}
	return s.unexpected("four hexadecimal digits")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// hexValue returns what a hexadecimal digit counts.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}

func (s *scanner) number() error {
	s.take('-')
	switch {
	case s.take('0'):
	case s.digits():
	default:
		return s.unexpected("a digit")
	}
	if s.take('.') && !s.digits() {
		return s.unexpected("a digit")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the byte at pos, or 0 at the end; 0 begins nothing in JSON.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) push(object bool) {
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.open) {
		s.open = append(s.open, 0)
	}
	s.open[word] &^= bit
	if object {
		s.open[word] |= bit
	}
	s.depth++
}

func (s *scanner) inObject() bool {
	top := s.depth - 1
	return s.open[top/64]&(1<<(top%64)) != 0
}

func (s *scanner) end() error {
	s.space()
	if s.pos < len(s.data) {
		return s.unexpected("the end")
	}
	return nil
}

func (s *scanner) unexpected(want string) error {
	if s.pos >= len(s.data) {
		return fmt.Errorf("cut off at byte %d, where %s was expected", s.pos, want)
	}
	return fmt.Errorf("byte %d is %q, where %s was expected", s.pos, s.data[s.pos], want)
}
