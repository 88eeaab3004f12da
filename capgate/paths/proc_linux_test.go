package paths

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A process file system is known by what it is, so that it is known wherever it is mounted.
func TestAProcessFileSystemIsKnownByWhatItIs(t *testing.T) {
	require.True(t, onProc("/proc"))
	require.True(t, onProc("/proc/self"))
	require.False(t, onProc(t.TempDir()))
	require.False(t, onProc("/proc/none"))
}
