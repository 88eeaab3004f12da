package decisionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/capgate/capgate/ledger/disk"
)

// maxRead bounds how much of a file is read, from its end: more than any file of ours has.
const maxRead = 2 * MaxFile

// open opens a file of the log. It must be a regular file, because the state directory may hold anything, and no link to
// one, which not every system can be told: so it looks first.
func open(path string, flags int) (*os.File, fs.FileInfo, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, nil, irregular(path)
	}
	f, info, err := disk.OpenRegular(path, flags|disk.NoFollow)
	if errors.Is(err, disk.ErrNotRegular) {
		err = irregular(path)
	}
	return f, info, err
}

func irregular(path string) error {
	return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file; remove it")}
}

// reader reads the records of one file, and later what was appended since.
type reader struct {
	f    *os.File
	at   int64
	line []byte // what there is of a line that is not whole yet, at most [MaxLine] bytes
	skip bool   // the rest of the line does not count: it is too long, or its beginning was not read
}

// openReader returns an error that wraps [fs.ErrNotExist] where there is no such file.
func openReader(path string) (*reader, error) {
	f, _, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read decision log: %w", err)
	}
	return &reader{f: f}, nil
}

func (r *reader) close() { _ = r.f.Close() }

// records returns the records from where the file was read to. Lines that are no records, or too long, are left out.
func (r *reader) records() ([]Record, error) {
	info, err := r.f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read decision log: %w", err)
	}
	if from := info.Size() - maxRead; from > r.at {
		r.at, r.line, r.skip = from, nil, true
	}
	var found []Record
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.f.ReadAt(chunk, r.at)
		r.at += int64(n)
		found = r.feed(found, chunk[:n])
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read decision log: %w", err)
		}
	}
}

// feed appends the records of the lines that end in the chunk.
func (r *reader) feed(found []Record, chunk []byte) []Record {
	for {
		piece, rest, ends := bytes.Cut(chunk, []byte("\n"))
		if len(r.line)+len(piece) > MaxLine {
			r.skip = true
		}
		if !r.skip {
			r.line = append(r.line, piece...)
		}
		if !ends {
			return found
		}
		found = r.end(found)
		chunk = rest
	}
}

// end takes the line as it is for a whole one.
func (r *reader) end(found []Record) []Record {
	if record, ok := parse(r.line); ok && !r.skip {
		found = append(found, record)
	}
	r.line, r.skip = r.line[:0], false
	return found
}

// readFile returns the records of a file; a last line without its end may be one. A file that does not exist has none.
func readFile(path string) ([]Record, error) {
	r, err := openReader(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.close()
	found, err := r.records()
	if err != nil {
		return nil, err
	}
	return r.end(found), nil
}
