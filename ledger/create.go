package ledger

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/ledger/internal/page"
)

// ensure creates the ledger when there is none, and makes the name of the one that is there durable: whoever created
// it may not have come to that yet, and no receipt must outlive its ledger's name.
func (l *File) ensure(ctx context.Context) error {
	if ctx.Err() != nil {
		return notRecorded(ctx.Err())
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.create() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return notRecorded(ctx.Err())
	}
}

func (l *File) create() error {
	dir := filepath.Dir(l.path)
	disk.SweepTemps(dir, l.tempPrefix())
	if _, err := os.Lstat(l.path); errors.Is(err, fs.ErrNotExist) {
		if err := disk.MakeDirs(dir); err != nil {
			return notRecorded(err)
		}
		if err := l.build(dir); err != nil {
			return notRecorded(err)
		}
	}
	if err := disk.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
		return notRecorded(err)
	}
	return nil
}

// build writes a complete empty ledger under a temporary name and links it to the final one. Of many who do so at once
// one wins, and the others find the winner's.
func (l *File) build(dir string) error {
	tmp, err := os.CreateTemp(dir, l.tempPrefix()+"*"+disk.TempSuffix) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := tmp.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(tmp.Name(), 0o600, &bbolt.Options{PageSize: page.Size, NoStatistics: true})
	if err != nil {
		return err
	}
	if err := db.Update(l.initialise); err != nil {
		db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), disk.FileMode(dir)); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), l.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// initialise writes the empty ledger.
func (l *File) initialise(bolt *bbolt.Tx) error {
	for _, name := range rules.Buckets {
		if _, err := bolt.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	created, err := stamp(l.now())
	if err != nil {
		return err
	}
	var id digest
	rand.Read(id[:]) // never fails: it ends the program instead
	meta := bolt.Bucket([]byte(bucketMeta))
	if err := meta.Put([]byte(metaFormat), binary.BigEndian.AppendUint32(nil, format)); err != nil {
		return err
	}
	t := &tx{bolt: bolt}
	return errors.Join(
		t.put(bucketMeta, []byte(metaID), id[:]),
		t.put(bucketMeta, []byte(metaCreated), []byte(created.Format(time.RFC3339Nano))),
		t.put(bucketMeta, []byte(metaHead), encodeLink(link{hash: id})),
	)
}

func (l *File) tempPrefix() string { return "." + filepath.Base(l.path) + ".new-" }
