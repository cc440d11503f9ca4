package runs

import (
	"bytes"
	"errors"
	"slices"

	"github.com/goart-dev/art"
)

// errStored is an error about stored trajectories, not the given ones.
type errStored struct{ error }

// Unwrap returns the cause.
func (e errStored) Unwrap() error { return e.error }

// groupsError is the error of putFirst or addGroups, for a file.
func groupsError(op, path string, err error) error {
	if stored := (errStored{}); errors.As(err, &stored) {
		return damagedFile(op, path, stored.error)
	}
	return invalid(op, err)
}

// putFirst returns a trajectory file of groups, followed by those of a file that are not among them. No groups and no
// file are nil.
func putFirst(groups []*art.TrajectoryGroup, file []byte) ([]byte, error) {
	if len(groups) == 0 {
		return file, nil
	}
	return merge(groups, file, union)
}

// addGroups returns a trajectory file of the groups of a file, followed by those that are not among them.
func addGroups(file []byte, groups []*art.TrajectoryGroup) ([]byte, error) {
	return merge(groups, file, func(given, stored []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		return union(stored, given)
	})
}

// combiner combines given and stored groups to one list.
type combiner func(given, stored []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// merge encodes groups and those of a file, which may be nil, as combine has combined them. In the usual case both are
// equal, and are only compared.
func merge(groups []*art.TrajectoryGroup, file []byte, combine combiner) ([]byte, error) {
	content, err := encodeGroups(groups)
	if err != nil || file == nil || bytes.Equal(content, file) {
		return content, err
	}
	stored, err := decodeGroups(file)
	if err != nil {
		return nil, errStored{err}
	}
	if groups, err = combine(groups, stored); err != nil {
		return nil, err
	}
	return encodeGroups(groups)
}

// union returns a, and those groups of b whose encoding differs from all of a.
func union(a, b []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
	known := map[string]bool{}
	for _, g := range a {
		content, err := encodeGroups([]*art.TrajectoryGroup{g})
		if err != nil {
			return nil, err
		}
		known[string(content)] = true
	}
	all := slices.Clone(a)
	for _, g := range b {
		content, err := encodeGroups([]*art.TrajectoryGroup{g})
		if err != nil {
			return nil, err
		}
		if !known[string(content)] {
			all = append(all, g)
		}
	}
	return all, nil
}
