package shell

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQuote(t *testing.T) {
	assert.Equal(t, `'it'\''s a "word"'`, Quote(`it's a "word"`))
	assert.Equal(t, `''`, Quote(""))
}

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"storm-42": "storm-42", "a/b:c@d.e": "a/b:c@d.e", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "ø": "'ø'", "~": "'~'",
	} {
		assert.Equal(t, want, Word(text), text)
	}
}

func TestFirstWord(t *testing.T) {
	for _, tt := range []struct{ line, word, rest string }{
		{"", "", ""},
		{"/bin/hook", "/bin/hook", ""},
		{" /bin/hook --client claude", "/bin/hook", " --client claude"},
		{`"/a b/hook" hook`, "/a b/hook", " hook"},
		{"'/a b/hook'", "/a b/hook", ""},
		{`"/a b/hook`, `"/a`, " b/hook"},
	} {
		word, rest := FirstWord(tt.line)
		assert.Equal(t, tt.word, word, tt.line)
		assert.Equal(t, tt.rest, rest, tt.line)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                    nil,
		" a  b\tc\n":                          {"a", "b", "c"},
		"'/a b/hook' --env-file .capgate/env": {"/a b/hook", "--env-file", ".capgate/env"},
		`'it'\''s' "x y"'z' ''`:               {"it's", "x yz", ""},
		`a\ b \$x`:                            {"a b", "$x"},
		"A=1 b#c d~":                          {"A=1", "b#c", "d~"},
	} {
		got, ok := Words(line)
		assert.True(t, ok, line)
		assert.Equal(t, want, got, line)
	}
	for _, line := range []string{"a $X", `"$X"`, "`a`", "a | b", "a && b", "a; b", "a > b", "(a)", "a*", "~/a", "# a", "'a", `"a`, `a\`, "{a,b}", "! a", `"a\"b"`} {
		_, ok := Words(line)
		assert.False(t, ok, line)
	}
}

func TestEveryQuotedWordIsReadBack(t *testing.T) {
	for _, text := range []string{"", "a", "it's", `a"b`, "$x `y` \\", "a\nb", "ø", "'", "''", "{}*?~#!"} {
		got, ok := Words(Word(text) + " " + Quote(text))
		assert.True(t, ok, text)
		assert.Equal(t, []string{text, text}, got)
	}
}
