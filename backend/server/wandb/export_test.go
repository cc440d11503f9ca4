package wandb

import (
	"maps"
	"slices"
)

// Patterns are the routes of training.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.table())) }
