package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkExport says whether a directory holds an earlier export. It is an error where it holds anything else.
func checkExport(dir string) (was bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at the directory: %w", err)
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a directory: name another", dir)
	}
	if here, err := os.Getwd(); err == nil {
		if real, err := filepath.EvalSymlinks(here); err == nil {
			here = real
		}
		if rel, err := filepath.Rel(dir, here); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return false, fmt.Errorf("%s is where you are, and would be replaced under your feet: go elsewhere first", dir)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, pluginMark))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at the directory: %w", err)
	}
	was = err == nil
	known := append(strings.Split(string(list), "\n"), pluginMark)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			return err
		}
		if !was {
			return fmt.Errorf("%s is not empty, and no earlier export: name another directory", dir)
		}
		if !slices.Contains(known, filepath.ToSlash(rel)) {
			return fmt.Errorf("%s is not part of the earlier export that it lies in, and would be lost: move it away first", path)
		}
		return nil
	})
	if err == nil && !was {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			err = fmt.Errorf("%s is not empty, and no earlier export: name another directory", dir)
		}
	}
	return was, err
}

// swapDir puts next in the place of dir, and what was there into old.
func swapDir(next, dir, old string) error {
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := err == nil
	if err := os.Rename(next, dir); err != nil {
		if had {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return err
	}
	return nil
}
