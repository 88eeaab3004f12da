package client

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutputIsBounded(t *testing.T) {
	var b tail
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 40 {
		n, err := b.Write(chunk)
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	_, _ = b.Write([]byte("the result"))
	assert.LessOrEqual(t, b.Len(), 2*maxOutput+len(chunk))
	assert.True(t, bytes.HasSuffix(b.Bytes(), []byte("the result")))
}
