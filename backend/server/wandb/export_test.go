package wandb

import (
	"maps"
	"slices"

	"github.com/goart-dev/art/internal/stable"
)

// SetDisk makes a server change files by a disk of a test.
func (o *Options) SetDisk(disk stable.Disk) { o.disk = disk }

// Patterns are the routes of training.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.table())) }
