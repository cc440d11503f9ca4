package hub

import (
	"crypto/sha1" //nolint:gosec // git names files by it; large files have a SHA-256
	"crypto/sha256"
	"fmt"
	"hash"
	"regexp"
	"strings"
)

// digest is a hexadecimal checksum: the SHA-256 of a file in Git LFS, or the SHA-1 of a git blob, which is that of
// "blob SIZE\0" and the content.
type digest string

var digestForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// parseDigest reads an ETag, which may be quoted, and weak.
func parseDigest(etag string) (digest, error) {
	text := strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	if !digestForm.MatchString(text) {
		return "", fmt.Errorf("the server gives no checksum for it (ETag %q): use another HF_ENDPOINT", etag)
	}
	return digest(text), nil
}

// hash returns the hash for content of that many bytes.
func (d digest) hash(size int64) hash.Hash {
	if len(d) == 2*sha256.Size {
		return sha256.New()
	}
	h := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// is reports whether a finished hash is the digest.
func (d digest) is(h hash.Hash) bool { return fmt.Sprintf("%x", h.Sum(nil)) == string(d) }
