package derive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capgate/capgate/ledger/disk"
)

// Write writes the file through a temporary one beside it, so that the hook reads the old spec or the new one.
func Write(path string, text []byte, force bool) (err error) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", path)
	case err == nil && !force:
		return fmt.Errorf("%s is there already: look at it, then replace it with --force", path)
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil { // a link stays, its target is replaced
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: %w", path, disk.Bare(err))
	}
	if err := disk.Replace(path, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w: name a file in a directory that is there and writable", path, disk.Bare(err))
	}
	return nil
}
