// Package fserr words errors of the file system for messages that name the path themselves.
package fserr

import (
	"errors"
	"io/fs"
)

// Pathless returns what went wrong without the path.
func Pathless(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Without returns what went wrong without the path, where it is this one: a parent that is at fault stays named.
func Without(err error, path string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == path {
		return pe.Err
	}
	return err
}
