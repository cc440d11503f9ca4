package hub

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

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
	optional = []string{"generation_config.json", "special_tokens_map.json", "chat_template.jinja"}
)

// checkNames refuses names that are not paths within the repository.
func checkNames(names []string) error {
	for _, name := range names {
		if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:\x00") {
			return fmt.Errorf("it lists a file %q, which is not a path within the repository: do not use it", name)
		}
	}
	return nil
}

// wanted returns the files to fetch first: all of them, unless the weights are sharded.
func wanted(names []string) ([]string, error) {
	var files, missing []string
	for _, name := range required {
		if slices.Contains(names, name) {
			files = append(files, name)
		} else {
			missing = append(missing, name)
		}
	}
	for _, name := range optional {
		if slices.Contains(names, name) {
			files = append(files, name)
		}
	}
	switch {
	case slices.Contains(names, indexFile):
		files = append(files, indexFile)
	case slices.Contains(names, weightsFile):
		files = append(files, weightsFile)
	default:
		missing = append(missing, weightsFile)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("it has no %s: it is not a model that can be used here. It has: %s",
			strings.Join(missing, ", "), brief.Names(names))
	}
	return files, nil
}
