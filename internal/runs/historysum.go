package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// historySumName is the file that tells whether history.jsonl is what was written.
const historySumName = "history.checksum.json"

// historySum is its content. It is replaced before each change of the history, so that the history is Before, or After,
// or, of an append that was interrupted, begins with Before.
type historySum struct {
	Before checksum `json:"before"`
	After  checksum `json:"after"`
}

func sumOf(content []byte) checksum {
	sum := sha256.Sum256(content)
	return checksum{int64(len(content)), hex.EncodeToString(sum[:])}
}

// allows tells whether a history of this content is one that an interruption at any moment may leave.
func (s historySum) allows(content []byte) bool {
	if sumOf(content) == s.After {
		return true
	}
	size := s.Before.Size
	return size >= 0 && size <= int64(len(content)) && sumOf(content[:size]) == s.Before
}

// announceHistory writes down that the history is about to change.
func (r *Run) announceHistory(before, after []byte) error {
	s := historySum{sumOf(before), sumOf(after)}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.disk.replace(filepath.Join(r.dir, historySumName), append(content, '\n')); err != nil {
		return err
	}
	r.announced = s
	return nil
}

// checkHistory compares the history with its checksum. What was lost cannot be restored from anything else, and what
// comes after it can be stored as well, so it is told and no error.
func (r *Run) checkHistory(content []byte) error {
	stored, err := os.ReadFile(filepath.Join(r.dir, historySumName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) && len(content) == 0 {
		r.announced = historySum{sumOf(nil), sumOf(nil)}
		return nil
	}
	if r.announced, err = parseHistorySum(stored); err == nil && !r.announced.allows(content) {
		err = fmt.Errorf("it has %d bytes of %d, or other content", len(content), r.announced.After.Size)
	}
	if err != nil {
		r.damage.History = true
		r.log.Warn("history.jsonl is not what was written: metrics that were logged may be missing or changed. "+
			"The checkpoints are not affected, and the run goes on; restore the file from a backup for whole curves",
			"path", r.historyPath(), "err", err)
	}
	return nil
}

// confirmHistory writes down that the last change of the history is done. It is not needed for going on, only for
// noticing that just this change was undone, so a disk that cannot take it is no reason for Close to fail.
func (r *Run) confirmHistory() {
	content := joinRows(r.history.rows)
	if r.history.torn || r.announced.After != sumOf(content) || r.announced.Before == r.announced.After {
		return
	}
	if err := r.announceHistory(content, content); err != nil {
		r.log.Warn("cannot write "+historySumName, "err", err)
	}
}

func parseHistorySum(content []byte) (s historySum, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return historySum{}, fmt.Errorf("%s: %w", historySumName, err)
	}
	return s, nil
}
