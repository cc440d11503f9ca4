package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// groupKey names a group.
type groupKey struct {
	owner owner
	name  string
}

// group is a group of rollouts. Its fields are guarded by the mutex of [Rollouts].
type group struct {
	key     groupKey
	model   *art.Model
	size    int // declared; 0 is unknown
	members []*rollout
	closed  int // of members
	began   time.Time
	timer   *time.Timer
}

// join returns the group for a rollout that is to be opened, a new one if there is none of that name, and counts the
// rollout. s.mu is held.
func (s *Rollouts) join(by owner, m *art.Model, req *openRequest) (*group, error) {
	if req.Group == "" {
		return nil, s.reserve(1)
	}
	key := groupKey{by, req.Group}
	g := s.groups[key]
	if g == nil {
		return s.newGroup(key, m, req.GroupSize)
	}
	if g.model != m {
		return nil, wire.FieldError("group", "is a group of the model %q", g.model.Name())
	}
	if req.GroupSize != 0 && req.GroupSize != g.size {
		return nil, wire.FieldError("group_size", "is %d, and the group was begun with %d; 0 is none", req.GroupSize, g.size)
	}
	if g.size == 0 {
		return g, s.reserve(1)
	}
	if len(g.members) == g.size {
		return nil, wire.FieldError("group", "has all of its %d rollouts; use another name", g.size)
	}
	return g, nil // counted when the group was begun
}

// newGroup begins a group. s.mu is held.
func (s *Rollouts) newGroup(key groupKey, m *art.Model, size int) (*group, error) {
	if size > s.opts.MaxRollouts {
		return nil, wire.FieldError("group_size",
			"is %d, more than RolloutOptions.MaxRollouts, which is %d", size, s.opts.MaxRollouts)
	}
	if err := s.reserve(max(size, 1)); err != nil {
		return nil, err
	}
	g := &group{key: key, model: m, size: size, began: time.Now()}
	g.timer = time.AfterFunc(s.opts.GroupTimeout, func() { s.expireGroup(g) })
	s.groups[key] = g
	return g, nil
}

// reserve counts n rollouts that are or may be opened, if there is room. s.mu is held.
func (s *Rollouts) reserve(n int) error {
	if s.held+n > s.opts.MaxRollouts {
		return s.tooManyRollouts()
	}
	s.held += n
	return nil
}

// expireGroup completes a group whose time is over.
func (s *Rollouts) expireGroup(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishGroup(g, failure{"group_timeout", "the group was not complete after " + s.opts.GroupTimeout.String() +
		"; see RolloutOptions.GroupTimeout"})
}

// closeGroup completes a group of the owner of a key.
func (s *Rollouts) closeGroup(by owner, name string) (groupInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[groupKey{by, name}]
	if g == nil {
		return groupInfo{}, &wire.Error{
			Status: http.StatusNotFound,
			Message: fmt.Sprintf("there is no group %s that is not complete; rollouts are opened with its name in group",
				wire.Quote(name)),
			Type: wire.TypeInvalid,
			Code: "group_not_found",
		}
	}
	s.finishGroup(g, failure{"group_closed", "the group was closed before the rollout"})
	return g.info(), nil
}

// countClosed counts a closed member of a group, which may complete it. s.mu is held.
func (s *Rollouts) countClosed(g *group) {
	g.closed++
	if g.closed == g.size {
		s.finishGroup(g, failure{}) // nothing is open
	}
}

// finishGroup completes a group. Its open members fail. s.mu is held.
func (s *Rollouts) finishGroup(g *group, why failure) {
	if s.groups[g.key] != g {
		return
	}
	delete(s.groups, g.key) // first: the last member to end would finish it again
	g.timer.Stop()
	for _, r := range g.members {
		s.end(r, &why)
	}
	s.held -= max(g.size-len(g.members), 0) // those that were never opened
	s.complete = append(s.complete, g)
	s.signal()
}

// oldestGroups returns the groups that are not complete, in the order in which they were begun. s.mu is held.
func (s *Rollouts) oldestGroups() []*group {
	return slices.SortedFunc(maps.Values(s.groups), func(a, b *group) int { return a.began.Compare(b.began) })
}

// Next returns the group, of any model, that was complete first; see [art.GroupSource]. Metadata of the group has its
// name as "group"; that of each trajectory has the id as "rollout", and what it was opened with. Trajectories are in
// the order in which they were opened.
func (s *Rollouts) Next(ctx context.Context) (*art.TrajectoryGroup, error) { return s.next(ctx, nil) }

// Groups is the source of the groups of one model, where a server has several. Groups of others stay.
func (s *Rollouts) Groups(m *art.Model) art.GroupSource { return modelGroups{s, m} }

// modelGroups is the source of the groups of one model.
type modelGroups struct {
	rollouts *Rollouts
	model    *art.Model
}

// Next implements [art.GroupSource].
func (g modelGroups) Next(ctx context.Context) (*art.TrajectoryGroup, error) {
	return g.rollouts.next(ctx, g.model)
}

// next waits for a group of a model, of any if m is nil.
func (s *Rollouts) next(ctx context.Context, m *art.Model) (*art.TrajectoryGroup, error) {
	for {
		g, changed, ended := s.take(m)
		if g != nil {
			return g.collect(), nil
		}
		if ended {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &art.Error{Op: "next group", Err: ctx.Err(), Hint: "the context ended before a group was complete"}
		}
	}
}

// take removes the first complete group of a model. Without one it returns what tells of a change, and whether there
// will be none.
func (s *Rollouts) take(m *art.Model) (g *group, changed <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.complete, func(g *group) bool { return m == nil || g.model == m })
	if i < 0 {
		return nil, s.changed, s.closed
	}
	g = s.complete[i]
	s.complete = slices.Delete(s.complete, i, i+1)
	for _, r := range g.members {
		s.drop(r)
	}
	s.held -= len(g.members)
	return g, nil, false
}

// collect returns the rollouts of a group that was taken.
func (g *group) collect() *art.TrajectoryGroup {
	out := &art.TrajectoryGroup{Metrics: map[string]float64{}, Metadata: map[string]any{"group": g.key.name}}
	for i, r := range g.members {
		if r.failed == nil {
			out.Trajectories = append(out.Trajectories, r.closed)
			continue
		}
		out.Failures = append(out.Failures, art.Failure{
			Attempt: i, Tries: 1, Type: r.failed.kind, Message: r.failed.message,
		})
	}
	return out
}

// tooManyRollouts is the error of a full memory. s.mu is held.
func (s *Rollouts) tooManyRollouts() error {
	open, waiting := 0, 0
	for _, r := range s.rollouts {
		if r.closed == nil {
			open++
		}
	}
	for _, g := range s.complete {
		waiting += len(g.members)
	}
	return tooMuch("too_many_rollouts", fmt.Sprintf(
		"there is no room for more rollouts: %d are open, and %d are in complete groups that nobody has taken; close "+
			"rollouts, take groups with Next, or raise RolloutOptions.MaxRollouts, which is %d",
		open, waiting, s.opts.MaxRollouts))
}
