package gates

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

type member struct{ key, value string }

func members(data string) (got []member, err error) {
	err = Members([]byte(data), func(key string, value []byte) {
		got = append(got, member{key, string(value)})
	})
	return got, err
}

func TestMembersVisitsEachMemberRaw(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	mixed := strings.Repeat(`{"a":[`, 50_000) + strings.Repeat(`]}`, 50_000)
	for _, c := range []struct {
		name, in string
		want     []member
	}{
		{"empty", `{}`, nil},
		{"white space everywhere", " \t\r\n{ \"a\" : 1 , \"b\" : [ 1 , 2 ] } \n", []member{{"a", "1"}, {"b", "[ 1 , 2 ]"}}},
		{"every kind of value", `{"s":"x","n":-1.5e+3,"t":true,"f":false,"z":null,"o":{"k":{}},"l":[[],[{}]]}`,
			[]member{{"s", `"x"`}, {"n", "-1.5e+3"}, {"t", "true"}, {"f", "false"}, {"z", "null"}, {"o", `{"k":{}}`}, {"l", "[[],[{}]]"}}},
		{"a repeated name is visited again", `{"a":1,"a":2}`, []member{{"a", "1"}, {"a", "2"}}},
		{"an escaped name is decoded", `{"\u0061\/":1}`, []member{{"a/", "1"}}},
		{"brackets and quotes inside strings", `{"a":"}]\"{[\\","b":1}`, []member{{"a", `"}]\"{[\\"`}, {"b", "1"}}},
		{"lone surrogates", `{"a":"\ud800","b":"\udc00x"}`, []member{{"a", `"\ud800"`}, {"b", `"\udc00x"`}}},
		{"deeper than encoding/json goes", `{"a":` + deep + `,"b":1}`, []member{{"a", deep}, {"b", "1"}}},
		{"deep and mixed", `{"a":` + mixed + `,"b":1}`, []member{{"a", mixed}, {"b", "1"}}},
		{"numbers keep their digits", `{"a":1152921504606846976,"b":1E400}`, []member{{"a", "1152921504606846976"}, {"b", "1E400"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := members(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestElementsVisitsEachElementRaw(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`: nil, ` [ ] `: nil, `[1]`: {"1"}, `[ {"a":[1,2]} , "]" , null ]`: {`{"a":[1,2]}`, `"]"`, "null"},
	} {
		var got []string
		require.NoError(t, Elements([]byte(in), func(v []byte) { got = append(got, string(v)) }))
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"", "{}", "[", "[1", "[1,]", "[1 2]", "[1]x", "null", `"[]"`, "[,]"} {
		require.Error(t, Elements([]byte(in), func([]byte) {}), in)
	}
}

func TestStringsVisitsTheTextsOfAValueAndOfListsInIt(t *testing.T) {
	const deep = 1_000_000
	for in, want := range map[string][]string{
		`"a"`: {"a"}, `""`: {""}, `["a","b"]`: {"a", "b"}, ` [ "a" , [ [ "\u0062" ] , [] , "c" ] ] `: {"a", "b", "c"},
		`{"a":"b"}`: nil, `[{"a":"b"},"c",{"d":["e"]}]`: {"c"}, `[1,null,true,"a"]`: {"a"}, `7`: nil, `null`: nil, ``: nil, `[]`: nil,
		strings.Repeat("[", deep) + `"a"` + strings.Repeat("]", deep): {"a"},
	} {
		var got []string
		for text := range Strings([]byte(in)) {
			got = append(got, text)
		}
		require.Equal(t, want, got, in[:min(len(in), 100)])
	}
	for _, in := range []string{`x`, `"`, `[x"a"]`, `{`, `"a" "b`} { // no values
		for text := range Strings([]byte(in)) {
			require.Equal(t, "a", text)
		}
	}
	for text := range Strings([]byte(`["a","b"]`)) {
		require.Equal(t, "a", text)
		break
	}
}

// Of an object only what is asked for is kept, by its decoded name, and of repeated names the last.
func TestFieldsKeepsTheMembersThatAreAskedFor(t *testing.T) {
	for in, want := range map[string]object{
		`{"a":1,"b":2,"ab":3,"":4}`:                 {"a": []byte("1"), "ab": []byte("3")},
		`{"a":1,"\u0061":2}`:                        {"a": []byte("2")},
		`{"\u0061":2,"a":1}`:                        {"a": []byte("1")},
		`{"\u0061\u0062":1,"\u0061\u0062\u0063":2}`: {"ab": []byte("1")},
		`{"x":{"a":1},"a\n":2,"A":3}`:               nil,
		`{"a":1`:                                    nil,
		`[]`:                                        nil,
		``:                                          nil,
	} {
		require.Equal(t, want, fields([]byte(in), "a", "ab"), in)
	}
	many := []byte(`{` + strings.Repeat(`"k":1,`, 100_000) + `"a":"x"}`)
	require.Less(t, testing.AllocsPerRun(1, func() { fields(many, "a", "ab") }), 10.0)
}

func TestMembersRefusesWhatIsNoObject(t *testing.T) {
	for _, in := range []string{
		"", " ", "null", "1", `"x"`, "[]", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{'a':1}`, `{"a":1}}`,
		`{"a":1} x`, `{"a":1}{"b":2}`, `{"a":[1,]}`, `{"a":[}`, `{"a":[1}`, `{"a":{"b":1]}`, `{"a":01}`, `{"a":-}`,
		`{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`, `{"a":tru}`, `{"a":True}`, `{"a":NaN}`, `{"a":"\x"}`,
		`{"a":"\u12G4"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", `{"a":"`, `{"a":"\`, `{"a":"\u1`, `{"a" 1}`, `{"a":1 "b":2}`,
		"\ufeff{}", `{"a":1}` + "\x00", `{"a":[1 2]}`, `{"a":{"b" 1}}`, `{"a":{"b":1,}}`, `{"a":{1:2}}`,
	} {
		_, err := members(in)
		require.ErrorIs(t, err, ErrSyntax, "%q", in)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestEveryTruncationIsRefusedAndKeepsWhatWasWhole(t *testing.T) {
	const in = `{"a":"x\u0041","b":[1,{"c":null}],"d":-1.5e3}`
	for n := range len(in) {
		got, err := members(in[:n])
		require.ErrorIs(t, err, ErrSyntax, "%q", in[:n])
		if n > len(`{"a":"x\u0041",`) {
			require.Equal(t, member{"a", `"x\u0041"`}, got[0])
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{`"plain"`, "plain", true}, {`""`, "", true}, {`"ünï 🙂"`, "ünï 🙂", true},
		{`"\u00fc\n"`, "ü\n", true}, {`"\ud83d\ude42"`, "🙂", true},
		{`"\ud800"`, "\ufffd", true}, {`"\ud800\ud800\udc00"`, "\ufffd𐀀", true}, {`"\ud83d\u0041"`, "\ufffdA", true}, {`"\ud83d\n"`, "\ufffd\n", true},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", true}, {`"\uABCD\uabcd"`, "\uabcd\uabcd", true}, {"\"a\xffb\"", "a\ufffdb", true}, {"\"\\n\xff\"", "\n\ufffd", true},
		{`null`, "", false}, {`1`, "", false}, {`{}`, "", false}, {``, "", false}, {`"`, "", false},
	} {
		got, ok := Text([]byte(c.in))
		require.Equal(t, c.ok, ok, "%q", c.in)
		require.Equal(t, c.want, got, "%q", c.in)
	}
}

// FuzzMembers holds the scanner to encoding/json, which is the other judge of what JSON is.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":"\u0041\ud800","a":[{},[1.5e-7]]}`, `{"tool_input":{"x":"}"},"session_id":"s"}`, `{"a":1}x`, "{\"a\":\"\x01\"}", `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		last := map[string]string{}
		err := Members(data, func(key string, value []byte) { last[key] = string(value) })
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > 9000 {
			return // beyond the nesting that encoding/json takes
		}
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(data, &want)
		if wantErr == nil && want == nil { // null
			require.Error(t, err)
			return
		}
		require.Equal(t, wantErr == nil, err == nil, "encoding/json: %v, here: %v", wantErr, err)
		if err != nil {
			return
		}
		require.Len(t, last, len(want))
		for key, value := range want {
			require.Equal(t, string(value), last[key])
			var s string
			if utf8.ValidString(key) && !strings.ContainsRune(key, utf8.RuneError) { // as all are that we ask for
				require.Equal(t, []byte(value), fields(data, "other", key)[key])
			}
			var all []string
			for text := range Strings(value) {
				all = append(all, text)
			}
			require.Equal(t, textsIn(t, value), all)
			text, ok := Text(value)
			require.Equal(t, len(value) > 0 && value[0] == '"', ok)
			if ok {
				require.NoError(t, json.Unmarshal(value, &s))
				require.Equal(t, s, text)
			}
		}
	})
}

// textsIn is Strings once more, on encoding/json.
func textsIn(t *testing.T, value []byte) (texts []string) {
	var text string
	var list []json.RawMessage
	switch {
	case value[0] == '"':
		require.NoError(t, json.Unmarshal(value, &text))
		return []string{text}
	case value[0] == '[':
		require.NoError(t, json.Unmarshal(value, &list))
	}
	for _, item := range list {
		texts = append(texts, textsIn(t, item)...)
	}
	return texts
}

// Every text of a few characters is JSON for the scanner exactly where it is for encoding/json.
func TestTheScannerAgreesOnEveryShortText(t *testing.T) {
	const alphabet = "9{}[]\"\\:,10-.e \t\r\n"
	var grow func(text string)
	grow = func(text string) {
		object := `{"k":` + text + `,"l":[` + text + `]}`
		err := Members([]byte(object), func(string, []byte) {})
		if valid := json.Valid([]byte(object)); valid != (err == nil) {
			t.Fatalf("%q: valid is %v, the scanner says %v", object, valid, err)
		}
		if len(text) < 4 {
			for _, c := range alphabet {
				grow(text + string(c))
			}
		}
	}
	grow("")
}

// Texts are skipped eight bytes at a time: each byte ends a text, or does not, wherever it stands.
func TestEachByteAnywhereInALongText(t *testing.T) {
	for _, filler := range []string{"x", " ", "\xff", "\x7f", "#", "]"} {
		for place := range 20 {
			for c := range 256 {
				text := []byte(`{"k":"` + strings.Repeat(filler, 20) + `"}`)
				text[6+place] = byte(c)
				_, err := members(string(text))
				require.Equal(t, json.Valid(text), err == nil, "%q", text)
			}
		}
	}
}

func TestEscapesTakeFourHexadecimalDigits(t *testing.T) {
	for c := range 0x80 {
		for place := range 4 {
			digits := []byte("0000")
			digits[place] = byte(c)
			text := `{"k":"\u` + string(digits) + `"}`
			require.Equal(t, json.Valid([]byte(text)), Members([]byte(text), func(string, []byte) {}) == nil, text)
		}
	}
}

// An error names the byte and what was expected there.
func TestTheErrorSaysWhereAndWhat(t *testing.T) {
	for text, want := range map[string]string{
		``:                   "cut off at byte 0, where '{' was expected",
		`{"a":[`:             "cut off at byte 6, where a value or ']' was expected",
		`{"a":[x`:            "byte 6 is 'x', where a value was expected",
		`{"a":[1,`:           "cut off at byte 8, where a value was expected",
		`{"a":[1,]}`:         "byte 8 is ']', where a value was expected",
		`{"a":{"b":1,}}`:     "byte 12 is '}', where a name was expected",
		`{"a":{`:             "cut off at byte 6, where a name or '}' was expected",
		`{"a":{1`:            "byte 6 is '1', where a name or '}' was expected",
		`{"a":{"b"1`:         "byte 9 is '1', where ':' was expected",
		`{"a":[1 1`:          "byte 8 is '1', where ',' or the container's end was expected",
		`{"a":{"b":1]}`:      "byte 11 is ']', where ',' or the container's end was expected",
		`{"a"x`:              "byte 4 is 'x', where ':' was expected",
		`{"a":1 "`:           "byte 7 is '\"', where ',' or '}' was expected",
		`{"a":1}x`:           "byte 7 is 'x', where the end was expected",
		`{a`:                 "byte 1 is 'a', where a string was expected",
		`{"a":"\x"}`:         "byte 7 is 'x', where an escape was expected",
		`{"a":"b`:            "cut off at byte 7, where the string's end was expected",
		`{"a":["b`:           "cut off at byte 8, where the string's end was expected",
		`{"a":{"b`:           "cut off at byte 8, where the string's end was expected",
		`{"a":null`:          "cut off at byte 9, where ',' or '}' was expected",
		`{"a":-x`:            "byte 6 is 'x', where a digit was expected",
		"{\"a\":[1\t,\n x]}": "byte 11 is 'x', where a value was expected",
	} {
		err := Members([]byte(text), func(string, []byte) {})
		require.ErrorIs(t, err, ErrSyntax)
		require.EqualError(t, err, "not a JSON object: "+want, text)
	}
	for text, want := range map[string]string{
		`{}`: "byte 0 is '{', where '[' was expected", `[1`: "cut off at byte 2, where ',' or ']' was expected", `[]x`: "byte 2 is 'x', where the end was expected",
	} {
		require.EqualError(t, Elements([]byte(text), func([]byte) {}), "not a JSON array: "+want, text)
	}
}

func TestTextIsAStringAndNothingElse(t *testing.T) {
	for value, want := range map[string]string{`""`: "", `"a"`: "a", `"\u0061"`: "a"} {
		text, ok := Text([]byte(value))
		require.True(t, ok, value)
		require.Equal(t, want, text)
	}
	for _, value := range []string{``, `"`, `a"`, `1`, `null`, `"\x"`, `"\"`, `"\u12"`, `"\u12G4"`, `"\ud800\u"`, `"abc`} {
		text, ok := Text([]byte(value))
		require.False(t, ok, value)
		require.Empty(t, text)
	}
}
