package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// storage is an error of the file system, nil of nil; hint may be empty.
func storage(op string, err error, hint string) error {
	switch {
	case err == nil:
		return nil
	case stable.IsFull(err):
		hint = strings.TrimSuffix("the disk is full: free some space and try again; "+hint, "; ")
	case stable.IsReadOnly(err), errors.Is(err, fs.ErrPermission):
		hint = strings.TrimSuffix("the folder cannot be written to; "+hint, "; ")
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrStorage, err), Hint: hint}
}

// corrupt is an error of what is stored, nil of nil. What a newer version wrote is not damaged: the hint is another one
// then.
func corrupt(op string, err error, hint string) error {
	switch {
	case err == nil:
		return nil
	case isNewer(err):
		return unsupported(op, err, upgrade)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrCorrupt, err), Hint: hint}
}

// invalid is an error of the caller.
func invalid(op string, err error) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
}

// Formats of files, beside that of the whole directory in model.json (see layoutVersion), which covers state.json. A
// file without a number is of format 1: before v0.1.0 they had none. A format gets a new number when a program that
// knows only the old one would misread it; the folder of a new one is refused, and nothing in it is changed.
const (
	checkpointFormat = 1 // of all files in the folder of a checkpoint, in checksums.json
	historyFormat    = 1 // of history.jsonl, in history.checksum.json
	// trajectoryFormat is that of the columns, in the metadata of a Parquet file.
	trajectoryFormat = 1
)

// newerFormat is the error of a file that a newer version of art wrote.
type newerFormat struct {
	path         string
	have, newest int
}

func (e *newerFormat) Error() string {
	return fmt.Sprintf("%s has format %d, and this version of art reads formats up to %d", e.path, e.have, e.newest)
}

// checkFormat refuses a file of JSON whose format is that of a newer version, in which other fields may have changed.
// Whether it is damaged is not its concern.
func checkFormat(path string, content []byte, newest int) error {
	var head struct {
		Format int `json:"format"` // 0 is none stored
	}
	if json.Unmarshal(content, &head) != nil || head.Format <= newest {
		return nil
	}
	return &newerFormat{path, head.Format, newest}
}

// upgrade says what to do about files of a newer version.
const upgrade = "nothing was changed; a newer version of art wrote it: " +
	"upgrade with go get github.com/goart-dev/art@latest, " +
	"or go install github.com/goart-dev/art/cmd/art@latest for the command"

// isNewer reports whether an error is about the format of a newer version.
func isNewer(err error) bool {
	_, newer := errors.AsType[*newerFormat](err)
	return newer
}

// unsupported is the error of a format or layout that this version does not know.
func unsupported(op string, err error, hint string) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrUnsupported, err), Hint: hint}
}
