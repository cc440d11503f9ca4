package hub

import (
	"crypto/sha1" //nolint:gosec // git names files by it; large files have a SHA-256
	"crypto/sha256"
	"fmt"
	"hash"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goart-dev/art/internal/brief"
)

// The files of a model. Those of required must be there; those of optional are fetched where the repository has them.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json" // names the shards
)

var (
	required = []string{configFile, "tokenizer.json", "tokenizer_config.json"}
	optional = []string{"generation_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json",
		"preprocessor_config.json", "processor_config.json"}
)

// checkNames refuses names that are not paths within the repository.
func checkNames(names []string) error {
	for _, name := range names {
		if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`) ||
			strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("it lists a file %q, which is not a path within the repository: do not use it", name)
		}
	}
	return nil
}

// reserved are names that Windows takes for devices, whatever follows a dot.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)`)

// checkShards refuses shards that the repository does not have, and names that are not the same file on every system.
func checkShards(shards, names []string) error {
	seen := map[string]string{}
	for _, shard := range shards {
		folded := strings.ToLower(shard)
		switch {
		case !slices.Contains(names, shard):
			return fmt.Errorf("its %s lists %q, which it does not have", indexFile, shard)
		case !strings.HasSuffix(shard, ".safetensors"), strings.ContainsAny(shard, `<>"|?*`), reserved.MatchString(shard):
			return fmt.Errorf("its %s lists %q, which is no name of a file with weights: do not use it", indexFile, shard)
		case seen[folded] != "":
			return fmt.Errorf("its %s lists %q and %q, which are one file on some systems: do not use it", indexFile,
				seen[folded], shard)
		}
		seen[folded] = shard
	}
	return nil
}

// maxSmall and maxWeights bound the bytes of a file: the hub takes up to 500 GB of one.
const (
	maxSmall   = 1 << 30
	maxWeights = 1 << 40
)

func checkSize(name string, size int64) error {
	limit := int64(maxSmall)
	if strings.HasSuffix(name, ".safetensors") {
		limit = maxWeights
	}
	if size > limit {
		return fmt.Errorf("%s: the server gives a size of %d bytes, more than %d: do not use it", name, size, limit)
	}
	return nil
}

// wanted returns the files to fetch first: all of them, unless the weights are sharded.
func wanted(names []string) ([]string, error) {
	var files, missing []string
	take := func(needed bool, list ...string) {
		for _, name := range list {
			if slices.Contains(names, name) {
				files = append(files, name)
			} else if needed {
				missing = append(missing, name)
			}
		}
	}
	take(true, required...)
	take(false, optional...)
	if slices.Contains(names, indexFile) {
		take(true, indexFile)
	} else {
		take(true, weightsFile)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("it has no %s: it is not a model that can be used here. It has: %s",
			strings.Join(missing, ", "), brief.Names(names))
	}
	return files, nil
}

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

func (d digest) is(h hash.Hash) bool { return fmt.Sprintf("%x", h.Sum(nil)) == string(d) }
