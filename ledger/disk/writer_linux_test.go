package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileThatIsOpenForWritingHasAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for name, c := range map[string]struct {
		flags int
		want  bool
	}{
		"writing":   {os.O_WRONLY, true},
		"both":      {os.O_RDWR, true},
		"appending": {os.O_WRONLY | os.O_APPEND, true},
		"reading":   {os.O_RDONLY, false},
	} {
		f, err := os.OpenFile(path, c.flags, 0)
		require.NoError(t, err)
		require.Equal(t, c.want, HasWriter(path), name)
		require.NoError(t, f.Close())
		require.False(t, HasWriter(path), name)
	}
	require.False(t, HasWriter(path+".none"))
}
