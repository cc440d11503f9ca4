package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// manifestName is the file of a checkpoint that describes the others.
const manifestName = "checksums.json"

// UpdateFile is the file of a checkpoint that says how its step was made. It belongs to that step only.
const UpdateFile = "update.json"

// manifest is the content of checksums.json.
type manifest struct {
	Format int                 `json:"format"` // of the checkpoint, see checkpointFormat
	Files  map[string]checksum `json:"files"`  // by path within the checkpoint, with slashes
}

// checksum identifies the content of a file.
type checksum struct {
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// syncFiles fsyncs the files of dir, and returns their checksums and the folders.
func (r *Run) syncFiles(dir string) (files map[string]checksum, folders []string, err error) {
	files = map[string]checksum{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			folders = append(folders, path)
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file; a checkpoint holds files and folders only", path)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := r.disk.SyncFile(path); err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = sum(path)
		return err
	})
	return files, folders, err
}

// sum computes the checksum of a file.
func sum(path string) (checksum, error) {
	f, err := os.Open(path)
	if err != nil {
		return checksum{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	return checksum{size, hex.EncodeToString(h.Sum(nil))}, err
}

// Verify compares each file of a checkpoint with its manifest. A file that is missing or different is an error that
// wraps [art.ErrCorrupt] and names it.
func (r *Run) Verify(step int) error {
	const op = "verify checkpoint"
	dir, ok := r.Checkpoint(step)
	if !ok {
		return invalid(op, fmt.Errorf("step %d has no checkpoint", step))
	}
	return corrupt(op, verify(dir), "restore "+dir+" from a backup, or continue from another step")
}

// verify checks the files in the order of their names.
func verify(dir string) error {
	m, err := readManifest(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		got, err := sum(path)
		if err != nil {
			return err
		}
		if got != m.Files[name] {
			return fmt.Errorf("%s differs from what was written: it has %d bytes of %d, or other content", path, got.Size,
				m.Files[name].Size)
		}
	}
	return nil
}

func readManifest(path string) (manifest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return manifest{}, err
	}
	if err := checkFormat(path, content, checkpointFormat); err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(content)
	if err != nil {
		return manifest{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// parseManifest reads checksums.json. The paths in it stay within the checkpoint.
func parseManifest(content []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return manifest{}, err
	}
	if m.Files == nil {
		return manifest{}, errors.New("it lists no files")
	}
	for name := range m.Files {
		if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
			return manifest{}, fmt.Errorf("%q is not a path within the checkpoint", name)
		}
	}
	return m, nil
}

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
	return corrupt("read history", checkFormat(path, stored, historyFormat), "")
}

func parseHistorySum(content []byte) (s historySum, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return historySum{}, fmt.Errorf("%s: %w", historySumName, err)
	}
	return s, nil
}
