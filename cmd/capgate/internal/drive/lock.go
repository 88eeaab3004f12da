package drive

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// dirName is the directory in the state directory that holds one file for each run and dimension that was looped. Whoever
// loops it has the file locked; it stays afterwards, for what the next loop must know.
const dirName = "loops"

// loopFile is the content of such a file.
type loopFile struct {
	Run       string    `json:"run"`
	Dimension string    `json:"dimension,omitempty"`
	Ledger    string    `json:"ledger"`        // the ledger's id: another one's run of this name is another run
	Dir       string    `json:"dir,omitempty"` // where the client's session belongs; "" = the client has none of ours
	PID       int       `json:"pid"`           // of the loop that has it, or had it last
	Since     time.Time `json:"since"`
}

// elsewhere reports whether the client's session of this loop belongs to another directory.
func (own loopFile) elsewhere(before loopFile) bool {
	return own.Dir != "" && before.Dir != "" && own.Dir != before.Dir
}

// errLooped says that another loop has the run and dimension.
var errLooped = errors.New("the run is looped already")

// lockLoop takes the run and dimension for this process, until unlock. before is what the file held.
func lockLoop(state string, own loopFile) (before loopFile, unlock func(), err error) {
	dir := filepath.Join(state, dirName)
	if err := disk.Mkdir(dir); err != nil && !errors.Is(err, os.ErrExist) {
		return before, nil, err
	}
	name := fmt.Sprintf("%x.json", sha256.Sum256([]byte(own.Run+"\x00"+own.Dimension)))
	f, _, err := disk.OpenRegular(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|disk.NoFollow)
	if err != nil {
		return before, nil, err
	}
	if disk.HasFlock {
		err = disk.TryLock(f, disk.Exclusive)
	}
	text, readErr := io.ReadAll(io.LimitReader(f, 64<<10))
	if readErr == nil {
		_ = json.Unmarshal(text, &before) // a file that holds nothing of ours says nothing
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, disk.ErrLocked) {
			err = errLooped
		}
		return before, nil, err
	}
	if before.Ledger != own.Ledger {
		before = loopFile{}
	}
	if own.Dir == "" {
		own.Dir = before.Dir
	}
	if own.elsewhere(before) {
		return before, func() { _ = f.Close() }, nil // the caller refuses, and what is known stays
	}
	text, err = json.Marshal(own)
	if err == nil {
		err = errors.Join(f.Truncate(0), writeAt(f, text))
	}
	if err != nil {
		_ = f.Close()
		return before, nil, err
	}
	return before, func() { _ = f.Close() }, nil
}

func writeAt(f *os.File, text []byte) error {
	_, err := f.WriteAt(append(text, '\n'), 0)
	return err
}
