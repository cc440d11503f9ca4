package art

import (
	"fmt"
	"sync"
)

// collapse counts the trainings in a row whose groups had nothing to tell apart.
type collapse struct {
	mu   sync.Mutex
	flat int
}

// check returns an [ErrCollapsed] when groups are the limit-th batch in a row without differences in any group. Others
// it counts, unless the training fails. A limit of 0 is none.
func (c *collapse) check(limit int, groups []*TrajectoryGroup) error {
	varied, rewarded := spreadOf(groups)
	c.mu.Lock()
	defer c.mu.Unlock()
	if varied {
		c.flat = 0
		return nil
	}
	c.flat++
	if limit == 0 || c.flat < limit {
		return nil
	}
	what, hint := "all rewards of a group are equal",
		"make scenarios of more even difficulty, raise the temperature or the group size, or let a judge rank ties"
	if !rewarded {
		what, hint = "all rewards are 0", "go back with Model.Restore if rewards were higher before; "+
			"otherwise give partial credit or begin with easier scenarios"
	}
	return &Error{"train", fmt.Errorf("%w: %s, for %d trainings in a row; no step was made", ErrCollapsed, what, c.flat),
		hint}
}

// spreadOf tells whether rewards differ within any group, and whether any is not 0.
func spreadOf(groups []*TrajectoryGroup) (varied, rewarded bool) {
	for _, g := range groups {
		if g == nil {
			continue
		}
		var first *Trajectory
		for _, t := range g.Trajectories {
			if t == nil {
				continue
			}
			if first == nil {
				first = t
			}
			varied = varied || t.Reward != first.Reward
			rewarded = rewarded || t.Reward != 0
		}
	}
	return varied, rewarded
}
