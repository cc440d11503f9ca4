package main

import (
	"path/filepath"
	"strings"
)

// servedModel is a model and the name that clients know it by.
type servedModel struct {
	name   string
	source source
}

// parseServed reads arguments of the form [NAME=]MODEL.
func parseServed(args []string) (list []servedModel, err error) {
	if len(args) == 0 {
		return nil, badUsage("want at least one MODEL")
	}
	seen := map[string]string{}
	for _, arg := range args {
		name, model, named := strings.Cut(arg, "=")
		if !named || exists(arg) {
			name, model = "", arg
		}
		s := servedModel{name: name}
		if s.source, err = find(model); err != nil {
			return nil, err
		}
		if s.name == "" {
			s.name = s.source.served(model)
		}
		if other, taken := seen[s.name]; taken {
			return nil, badUsage("%s and %s would both be served as %q: give one another name, NAME=%s", other, arg, s.name,
				model)
		}
		seen[s.name] = arg
		list = append(list, s)
	}
	return list, nil
}

// served is the name that a model is served as by default: that of the run, or the last element of a path without what
// the names of models cannot have.
func (s source) served(model string) string {
	name := model
	if s.run != "" {
		name = s.run
	}
	if full, err := filepath.Abs(name); err == nil { // of "."
		name = full
	}
	name, _, _ = strings.Cut(filepath.Base(name), "@") // the revision
	return strings.TrimPrefix(strings.TrimSuffix(name, ".gguf"), ".")
}
