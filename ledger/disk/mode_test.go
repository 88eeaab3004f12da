//go:build unix

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory that a group shares has the setgid bit, and what is made in it is the group's as well, whatever the umask.
// Everything else is its owner's alone.
func TestNewFilesTakeTheGroupOfASharedFolder(t *testing.T) {
	for _, c := range []struct {
		folder, file, dir fs.FileMode
	}{
		{0o700, 0o600, 0o700},
		{0o755, 0o600, 0o700},
		{0o770, 0o600, 0o700},
		{0o770 | fs.ModeSetgid, 0o660, 0o770 | fs.ModeSetgid},
		{0o750 | fs.ModeSetgid, 0o640, 0o750 | fs.ModeSetgid},
		{0o777 | fs.ModeSetgid, 0o660, 0o770 | fs.ModeSetgid},
	} {
		for _, umask := range []int{0, 0o022, 0o077} {
			top := t.TempDir()
			require.NoError(t, os.Chmod(top, c.folder))
			old := syscall.Umask(umask)
			f, _, err := OpenRegular(filepath.Join(top, "file"), os.O_RDWR|os.O_CREATE)
			locked, lockErr := LockPath(t.Context(), filepath.Join(top, "lock"))
			replaced := Replace(filepath.Join(top, "replaced"), nil, FileMode(top))
			dirs := MakeDirs(filepath.Join(top, "a", "b"))
			syscall.Umask(old)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.NoError(t, lockErr)
			locked()
			require.NoError(t, replaced)
			require.NoError(t, dirs)
			for name, want := range map[string]fs.FileMode{"file": c.file, "lock": c.file, "replaced": c.file, "a": c.dir, "a/b": c.dir} {
				info, err := os.Stat(filepath.Join(top, name))
				require.NoError(t, err)
				require.Equal(t, want, info.Mode()&(fs.ModePerm|fs.ModeSetgid), "%s in %v, umask %o", name, c.folder, umask)
			}
		}
	}
}

// A file that holds something has the mode that somebody gave it.
func TestAFileThatIsThereKeepsItsMode(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.Chmod(top, 0o770|fs.ModeSetgid))
	path := filepath.Join(top, "file")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	f, info, err := OpenRegular(path, os.O_RDWR|os.O_CREATE)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}
