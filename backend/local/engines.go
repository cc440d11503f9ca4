package local

import (
	"cmp"
	"slices"

	"github.com/goart-dev/art/backend/server"
)

// engines returns what the engines of the base models do, in the order of their names. Those of a closed backend do
// nothing.
func (b *Backend) engines() (list []server.EngineStats) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, l := range b.bases {
		if b.closed || l.base == nil { // it is being loaded
			continue
		}
		s := l.base.engine.Stats()
		list = append(list, server.EngineStats{
			Base: l.base.name, Running: s.Running, Waiting: s.Waiting,
			Blocks: s.Blocks, Used: s.Blocks - s.Free - s.Cached, Cached: s.Cached,
			Prefilled: s.Prefilled, Sampled: s.Sampled, Reused: s.Reused, Preempted: s.Preempted, Evicted: s.Evicted,
		})
	}
	slices.SortFunc(list, func(a, b server.EngineStats) int { return cmp.Compare(a.Base, b.Base) })
	return list
}
