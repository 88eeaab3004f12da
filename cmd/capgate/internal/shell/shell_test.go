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
