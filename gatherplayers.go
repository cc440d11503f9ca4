package art

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// GatherPlayers is [GatherGroups] for rollouts in which several agents take part, such as both players of a game. Each
// rollout returns one trajectory for each player, in their order. The result has the groups of each player, to be
// trained on by its own model:
//
//	games, err := art.GatherPlayers(ctx, scenarios, 2, play, opts)
//	_, err = white.Train(ctx, games[0], cfg)
//	_, err = black.Train(ctx, games[1], cfg)
//
// A player without a turn has a nil trajectory, which is left out of its group. A rollout that fails is a [Failure] of
// the groups of all players. [GatherOptions].After is refused; the trajectories that events tell of are those of the
// first player who has one. opts may be nil. Errors are those of GatherGroups.
func GatherPlayers[S any](
	ctx context.Context, scenarios []S, players int, rollout func(context.Context, S) ([]*Trajectory, error),
	opts *GatherOptions,
) ([][]*TrajectoryGroup, error) {
	var p problems
	p.check(players > 0, "players is %d, want > 0", players)
	p.check(rollout != nil, "rollout is nil")
	p.check(opts == nil || opts.After == nil, "After is set, and does not know whose group it gets")
	if err := p.err("gather", "call what After would on the groups of the result"); err != nil {
		return nil, err
	}
	t := &table{players: players, seats: map[*Trajectory][]*Trajectory{}}
	groups, err := GatherGroups(ctx, scenarios, func(ctx context.Context, s S) (*Trajectory, error) {
		start := time.Now().UTC().Round(0)
		all, err := rollout(ctx, s)
		if err != nil {
			return nil, err
		}
		return t.seat(all, start)
	}, opts)
	if groups == nil {
		return nil, err
	}
	return t.deal(groups), err
}

// table has the trajectories of all players of a gather.
type table struct {
	players int
	mu      sync.Mutex
	seats   map[*Trajectory][]*Trajectory // by the one that stands for them
}

// seat keeps the trajectories of a rollout, and returns one that stands for them.
func (t *table) seat(all []*Trajectory, start time.Time) (*Trajectory, error) {
	if len(all) != t.players {
		return nil, fmt.Errorf("rollout returned %d trajectories for %d players", len(all), t.players)
	}
	var first *Trajectory
	for i, x := range all {
		if x == nil {
			continue
		}
		for _, other := range all[:i] {
			if x == other {
				return nil, errors.New("rollout returned one trajectory for two players")
			}
		}
		finish(x, start)
		if first == nil {
			first = x
		}
	}
	if first == nil {
		return nil, errNoTrajectory
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seats[first] = all
	return first, nil
}

// deal splits groups by player.
func (t *table) deal(groups []*TrajectoryGroup) [][]*TrajectoryGroup {
	out := make([][]*TrajectoryGroup, t.players)
	for _, g := range groups {
		for player := range out {
			own := g.Clone()
			own.Trajectories = nil
			for _, first := range g.Trajectories {
				if x := t.seats[first][player]; x != nil {
					own.Trajectories = append(own.Trajectories, x)
				}
			}
			out[player] = append(out[player], own)
		}
	}
	return out
}
