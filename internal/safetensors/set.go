package safetensors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/mapped"
)

// Names of the weights in Hugging Face folders.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// Set is the tensors of a model, of one file or of several shards. It is safe for concurrent use, up to Close.
type Set struct {
	names []string
	files map[string]*File // by name of the tensor
	open  []*File
}

// OpenIndex opens the weights of a Hugging Face folder: model.safetensors, or the shards that
// model.safetensors.index.json lists. The index decides: each tensor that it lists must be in the shard that it names,
// and tensors that it does not list are not part of the set. Shards lie in the folder itself.
func OpenIndex(dir string) (*Set, error) {
	content, unmap, err := mapped.Open(filepath.Join(dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return openSingle(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	shards, err := parseIndex(content)
	err = errors.Join(err, unmap())
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", filepath.Join(dir, indexName), err)
	}
	s := &Set{files: map[string]*File{}}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		f, err := Open(filepath.Join(dir, shard))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w; %s lists it: download the model again", err, indexName), s.Close())
		}
		listed := shards[shard]
		slices.SortFunc(listed, func(a, b string) int {
			return cmp.Or(cmp.Compare(f.order(a), f.order(b)), cmp.Compare(a, b))
		})
		s.add(f, listed)
		if f.order(listed[0]) < 0 {
			err := formatErrorf("%s lists tensor %q, which %s does not hold; download both again", indexName, listed[0], shard)
			return nil, errors.Join(fmt.Errorf("safetensors: %s: %w", dir, err), s.Close())
		}
	}
	return s, nil
}

func openSingle(dir string) (*Set, error) {
	f, err := Open(filepath.Join(dir, singleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("safetensors: %s has neither %s nor %s: %w", dir, singleName, indexName, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return f.Set(), nil
}

// Set returns the file as a set.
func (f *File) Set() *Set {
	s := &Set{files: map[string]*File{}}
	s.add(f, f.Names())
	return s
}

// Shards returns the names of the files that a model.safetensors.index.json lists, sorted. None has a folder.
func Shards(index []byte) ([]string, error) {
	shards, err := parseIndex(index)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return slices.Sorted(maps.Keys(shards)), nil
}

// parseIndex returns the names of the tensors of each shard. Only the weight_map is read.
func parseIndex(content []byte) (shards map[string][]string, err error) {
	defer recoverFormat(&err)
	switch {
	case len(content) > MaxHeader:
		fail("the index has %d bytes, more than %d", len(content), MaxHeader)
	case !json.Valid(content):
		fail("the index is not valid JSON; it may be truncated")
	}
	shards = map[string][]string{}
	p := newParser(content)
	p.object("the index", func(key string) {
		if key != "weight_map" {
			if err := p.Decode(new(json.RawMessage)); err != nil {
				panic(formatError{err})
			}
			return
		}
		p.object(key, func(tensor string) {
			shard := p.str(key)
			if !filepath.IsLocal(shard) || strings.ContainsAny(shard, `/\`) {
				fail("tensor %q is in %q; a shard is a file of the same folder", tensor, shard)
			}
			shards[shard] = append(shards[shard], tensor)
		})
	})
	if len(shards) == 0 {
		fail("it has no weight_map")
	}
	return shards, nil
}

func (f *File) order(name string) int {
	if i, ok := f.index[name]; ok {
		return i
	}
	return -1
}

func (s *Set) add(f *File, names []string) {
	s.open = append(s.open, f)
	s.names = append(s.names, names...)
	for _, name := range names {
		s.files[name] = f
	}
}

// Names returns the names of all tensors: shard by shard in the order of the shards' names, each in the order of its
// data.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Tensor returns the tensor of that name. As for [File.Tensor], its Data is part of the mapped file.
func (s *Set) Tensor(name string) (Tensor, bool) {
	f, ok := s.files[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensor(name)
}

// Release lets the system evict the pages of a tensor. Reading it loads them again.
func (s *Set) Release(name string) {
	if f := s.files[name]; f != nil {
		f.Release(name)
	}
}

// Close closes all files of the set; see [File.Close].
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.open {
		errs = append(errs, f.Close())
	}
	s.open, s.files, s.names = nil, nil, nil
	return errors.Join(errs...)
}
