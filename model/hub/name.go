package hub

import (
	"fmt"
	"regexp"
	"strings"
)

// defaultRevision is the branch of a name that has no revision.
const defaultRevision = "main"

// Name is a model on the hub.
type Name struct {
	Repo     string // ORG/NAME
	Revision string // a branch, a tag, or a commit of 40 hexadecimal digits
}

// repoPart is one side of ORG/NAME, in the characters that the hub allows. Double dashes would be ambiguous in the
// cache.
var repoPart = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

// revisionPart is an element of a revision, between slashes.
var revisionPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)

// ParseName reads "ORG/NAME" or "ORG/NAME@revision".
func ParseName(text string) (Name, error) {
	repo, revision, given := strings.Cut(text, "@")
	if !given {
		revision = defaultRevision
	}
	n := Name{repo, revision}
	if !validRepo(repo) {
		return n, fmt.Errorf("hub: %q is not the name of a model: write ORG/NAME or ORG/NAME@revision", text)
	}
	if !validRevision(revision) {
		return n, fmt.Errorf("hub: %q: %q is not a revision: write the name of a branch or tag, or a commit", text, revision)
	}
	return n, nil
}

func validRepo(repo string) bool {
	org, name, ok := strings.Cut(repo, "/")
	return ok && len(repo) <= 96 && repoPart.MatchString(org) && repoPart.MatchString(name) && !hasDouble(repo)
}

func hasDouble(s string) bool { return strings.Contains(s, "--") || strings.Contains(s, "..") }

func validRevision(revision string) bool {
	for part := range strings.SplitSeq(revision, "/") {
		if !revisionPart.MatchString(part) || strings.Contains(part, "..") || len(part) > 128 {
			return false
		}
	}
	return len(revision) <= 256
}

// String returns ORG/NAME@revision.
func (n Name) String() string { return n.Repo + "@" + n.Revision }

// isCommit reports whether a revision is a full commit hash, which never changes.
func isCommit(revision string) bool { return commitForm.MatchString(revision) }

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
