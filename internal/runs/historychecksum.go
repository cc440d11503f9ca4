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

// historySumName is the file with the checksums of history.jsonl.
const historySumName = "history.checksum.json"

// historySum is its content. It is replaced before each change of the history, so that the history is Before or After,
// or begins with Before, if an append was interrupted.
type historySum struct {
	Format int      `json:"format"` // of the history, see historyFormat
	Before checksum `json:"before"`
	After  checksum `json:"after"`
}

func sumOf(content []byte) checksum {
	sum := sha256.Sum256(content)
	return checksum{int64(len(content)), hex.EncodeToString(sum[:])}
}

// allows reports whether an interruption may have left a history with this content.
func (s historySum) allows(content []byte) bool {
	if sumOf(content) == s.After {
		return true
	}
	size := s.Before.Size
	return size >= 0 && size <= int64(len(content)) && sumOf(content[:size]) == s.Before
}

// announceHistory stores the checksums of a history that is about to change.
func (r *Run) announceHistory(before, after []byte) error {
	s := historySum{historyFormat, sumOf(before), sumOf(after)}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.disk.Replace(filepath.Join(r.dir, historySumName), append(content, '\n')); err != nil {
		return err
	}
	r.announced = s
	return nil
}

// checkHistory compares the history with its checksum. A difference is logged and not an error: what was lost cannot be
// restored, and does not prevent further changes.
func (r *Run) checkHistory(content []byte) error {
	stored, err := os.ReadFile(filepath.Join(r.dir, historySumName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) && len(content) == 0 {
		r.announced = historySum{historyFormat, sumOf(nil), sumOf(nil)}
		return nil
	}
	if r.announced, err = parseHistorySum(stored); err == nil && !r.announced.allows(content) {
		err = fmt.Errorf("it has %d bytes of %d, or other content", len(content), r.announced.After.Size)
	}
	if err != nil {
		r.damage.History = true
		r.log.Warn("history.jsonl differs from what was written: logged metrics may be missing or changed. "+
			"The checkpoints are not affected, and the run goes on; restore the file from a backup for complete curves",
			"path", r.historyPath(), "err", err)
	}
	return nil
}

// confirmHistory records that the last change of the history is done. That only serves to notice if just this change is
// undone, so Close does not fail when the disk cannot store it.
func (r *Run) confirmHistory() {
	content := joinRows(r.history.rows)
	if r.history.torn || r.announced.After != sumOf(content) || r.announced.Before == r.announced.After {
		return
	}
	if err := r.announceHistory(content, content); err != nil {
		r.log.Warn("cannot write "+historySumName, "err", err)
	}
}

// checkHistoryFormat refuses a history that a newer version wrote.
func (r *Run) checkHistoryFormat() error {
	path := filepath.Join(r.dir, historySumName)
	stored, err := readIfThere(path)
	if err != nil {
		return storage("read history", err, "")
	}
	var head struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(stored, &head) != nil {
		return nil // damaged: checkHistory tells
	}
	if err := checkFormat(path, head.Format, historyFormat); err != nil {
		return corrupt("read history", err, "")
	}
	return nil
}

func parseHistorySum(content []byte) (s historySum, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return historySum{}, fmt.Errorf("%s: %w", historySumName, err)
	}
	return s, nil
}
