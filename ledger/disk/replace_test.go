package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// replacers are the two ways to replace a file, which differ in the flush of the directory alone.
var replacers = map[string]func(path string, text []byte, mode os.FileMode) error{"Replace": Replace, "Swap": Swap}

func TestTheNewFileIsThereAndNothingElse(t *testing.T) {
	for name, replace := range replacers {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			for _, text := range []string{"one", "", "three"} {
				require.NoError(t, replace(path, []byte(text), 0o640))
				requireText(t, path, text)
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
			require.Equal(t, []string{"f"}, names(t, filepath.Dir(path)))
		})
	}
}

func TestAFailureLeavesWhatWasThere(t *testing.T) {
	for name, replace := range replacers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			require.NoError(t, os.Mkdir(path, 0o700)) // a file cannot take a directory's place
			require.Error(t, replace(path, []byte("x"), 0o600))
			require.DirExists(t, path)
			require.Equal(t, []string{"f"}, names(t, dir))

			require.ErrorIs(t, replace(filepath.Join(dir, "none", "f"), nil, 0o600), os.ErrNotExist)
			require.Equal(t, []string{"f"}, names(t, dir))
		})
	}
}

func TestALinkIsReplacedAndNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(target, []byte("old"), 0o600))
	if err := os.Symlink(target, link); err != nil {
		t.Skip("no symbolic links:", err)
	}
	require.NoError(t, Replace(link, []byte("new"), 0o600))
	requireText(t, link, "new")
	requireText(t, target, "old")
}

func requireText(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
