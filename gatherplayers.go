package art

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	var byFirst sync.Map // the trajectories of all players of a rollout, by the one that the gather knows
	groups, err := GatherGroups(ctx, scenarios, func(ctx context.Context, s S) (*Trajectory, error) {
		start := time.Now().UTC().Round(0)
		all, err := rollout(ctx, s)
		if err != nil {
			return nil, err
		}
		first, err := finishPlayers(all, players, start)
		byFirst.Store(first, all)
		return first, err
	}, opts)
	if groups == nil {
		return nil, err
	}
	out := make([][]*TrajectoryGroup, players)
	for _, g := range groups {
		for player := range out {
			own := g.Clone()
			own.Trajectories = nil
			for _, first := range g.Trajectories {
				all, _ := byFirst.Load(first)
				if t := all.([]*Trajectory)[player]; t != nil {
					own.Trajectories = append(own.Trajectories, t)
				}
			}
			out[player] = append(out[player], own)
		}
	}
	return out, err
}

// finishPlayers finishes the trajectories of a rollout that began at start, and returns that of the first player who
// has one.
func finishPlayers(all []*Trajectory, players int, start time.Time) (*Trajectory, error) {
	if len(all) != players {
		return nil, fmt.Errorf("rollout must return a trajectory for each of its players: want %d, got %d", players,
			len(all))
	}
	var first *Trajectory
	for i, t := range all {
		if t == nil {
			continue
		}
		if slices.Contains(all[:i], t) {
			return nil, errors.New("rollout returned one trajectory for two players")
		}
		finish(t, start)
		first = cmp.Or(first, t)
	}
	if first == nil {
		return nil, errNoTrajectory
	}
	return first, nil
}
