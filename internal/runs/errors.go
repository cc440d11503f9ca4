package runs

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// storage is an error of the file system; hint may be empty.
func storage(op string, err error, hint string) error {
	switch {
	case stable.IsFull(err):
		hint = join("the disk is full: free some space and try again", hint)
	case stable.IsReadOnly(err), errors.Is(err, fs.ErrPermission):
		hint = join("the folder cannot be written to", hint)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrStorage, err), Hint: hint}
}

// corrupt is an error of what is stored. What a newer version wrote is not damaged: the hint is another one then.
func corrupt(op string, err error, hint string) error {
	if isNewer(err) {
		return unsupported(op, err, upgrade)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrCorrupt, err), Hint: hint}
}

// invalid is an error of the caller.
func invalid(op string, err error) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
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

// checkFormat refuses the format of a newer version. 0 is none stored.
func checkFormat(path string, have, newest int) error {
	if have > newest {
		return &newerFormat{path, have, newest}
	}
	return nil
}

// upgrade says what to do about files of a newer version.
const upgrade = "nothing was changed; a newer version of art wrote it: " +
	"upgrade with go get github.com/goart-dev/art@latest, " +
	"or go install github.com/goart-dev/art/cmd/art@latest for the command"

// isNewer reports whether an error is about the format of a newer version.
func isNewer(err error) bool {
	newer := new(newerFormat)
	return errors.As(err, &newer)
}

// unsupported is the error of a format or layout that this version does not know.
func unsupported(op string, err error, hint string) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrUnsupported, err), Hint: hint}
}
