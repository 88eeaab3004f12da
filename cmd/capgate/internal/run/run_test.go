package run

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger"
)

// TestDimensionsNeverNull: the shape of run show is promised.
func TestDimensionsNeverNull(t *testing.T) {
	text, err := json.Marshal(show(ledger.Usage{}))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"dimensions":{}`)
}
