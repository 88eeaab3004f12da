package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneOf(t *testing.T) {
	assert.Equal(t, "", OneOf(nil))
	assert.Equal(t, "a", OneOf([]string{"a"}))
	assert.Equal(t, "a or b", OneOf([]string{"a", "b"}))
	assert.Equal(t, "a, b or c", OneOf([]string{"a", "b", "c"}))
}

func TestPlural(t *testing.T) {
	assert.Equal(t, "1 turn", Plural(1, "turn"))
	assert.Equal(t, "0 turns", Plural(0, "turn"))
	assert.Equal(t, "2 entries", Plural(2, "entry"))
}

func TestBuildOnOneLine(t *testing.T) {
	assert.Equal(t, "v1 0123456789ab+changes go1 linux/amd64",
		Build{Version: "v1", Revision: "0123456789abcdef", Modified: true, Go: "go1", OS: "linux", Arch: "amd64"}.String())
}
