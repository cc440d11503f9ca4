package tenancy

import (
	"errors"
	"io/fs"
	"os"
	"regexp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// Public is the text of an error for tenants: without paths of the server, and of errors of its files without more than
// what kind they are.
func Public(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		return damage.Error()
	case stable.IsFull(err):
		return "the server's disk is full; try again when its operator has freed some space"
	case errors.As(err, &path), errors.As(err, &link), errors.Is(err, art.ErrStorage), errors.Is(err, art.ErrCorrupt):
		return "the server could not read or write its files; its log has the details"
	}
	return absolutePath.ReplaceAllString(err.Error(), "${1}a file of the server")
}

// absolutePath is a path from the root, or from a drive, of at least two names. What follows a colon or a slash is part
// of an address.
var absolutePath = regexp.MustCompile(`(^|[\s"'(=,\[])` +
	`(?:(?:[A-Za-z]:)?[\\/]+[^\\/\s"'(),:;]+(?:[\\/]+[^\\/\s"'(),:;]*)+|[A-Za-z]:\\[^\s"'(),:;]*)`)
