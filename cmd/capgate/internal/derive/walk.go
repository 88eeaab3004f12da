package derive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/ledger/disk"
)

// maxDefinition bounds an agent definition, in bytes.
const maxDefinition = 1 << 20

// Read reads every *.md file below dir, as the client does: symlinks are followed, and a file or directory
// that is there under several names counts once. They are sorted by name. Errors name the file.
func Read(dir string) ([]Definition, error) {
	w := walk{root: dir}
	if err := w.directory(dir); err != nil {
		return nil, err
	}
	if len(w.found) == 0 {
		return nil, fmt.Errorf("%s: no agent definition (*.md) is there: name the directory that holds them, such as .claude/agents", dir)
	}
	slices.SortFunc(w.found, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	for i, d := range w.found[1:] {
		if other := w.found[i]; other.Name == d.Name {
			first, second := min(other.File, d.File), max(other.File, d.File)
			return nil, fmt.Errorf("%s: its name %q is that of %s, too: rename or remove one", second, d.Name, first)
		}
	}
	return w.found, nil
}

type walk struct {
	root  string
	seen  []fs.FileInfo
	found []Definition
}

// again reports whether the file was met before, under whatever name, and remembers it.
func (w *walk) again(info fs.FileInfo) bool {
	if slices.ContainsFunc(w.seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) }) {
		return true
	}
	w.seen = append(w.seen, info)
	return false
}

func (w *walk) directory(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && w.again(info) {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: name a directory that can be read", dir, disk.Bare(err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			err = w.directory(path)
		case !strings.HasSuffix(path, ".md"):
			continue
		case err != nil:
			err = fmt.Errorf("%s: %w: mend or remove it", path, disk.Bare(err))
		case !w.again(info):
			err = w.file(path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) file(path string, info fs.FileInfo) error {
	text, err := readDefinition(path, info)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d, err := Parse(text)
	if errors.Is(err, errNoFrontMatter) {
		err = fmt.Errorf("%w, or move it out of %s", err, w.root)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.File = path
	w.found = append(w.found, d)
	return nil
}

func readDefinition(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() { // to open a FIFO would wait for its other end
		return nil, errors.New("it is no regular file: remove it")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: make it readable or move it elsewhere", disk.Bare(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	switch {
	case err != nil:
		return nil, disk.Bare(err)
	case len(text) > maxDefinition:
		return nil, fmt.Errorf("it is larger than %d bytes: shorten it or move it elsewhere", maxDefinition)
	}
	return text, nil
}
