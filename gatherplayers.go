package art

import (
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
	trajectories := &playerTrajectories{players: players, byFirst: map[*Trajectory][]*Trajectory{}}
	groups, err := GatherGroups(ctx, scenarios, func(ctx context.Context, s S) (*Trajectory, error) {
		start := time.Now().UTC().Round(0)
		all, err := rollout(ctx, s)
		if err != nil {
			return nil, err
		}
		return trajectories.store(all, start)
	}, opts)
	if groups == nil {
		return nil, err
	}
	return trajectories.split(groups), err
}

// playerTrajectories has the trajectories of all players of each rollout. The gather knows one of them: that of the
// first player who has one.
type playerTrajectories struct {
	players int
	mu      sync.Mutex
	byFirst map[*Trajectory][]*Trajectory // of all players, by the one that the gather knows
}

// store finishes and stores the trajectories of a rollout that began at start, and returns the one for the gather.
func (p *playerTrajectories) store(all []*Trajectory, start time.Time) (*Trajectory, error) {
	if len(all) != p.players {
		return nil, fmt.Errorf("rollout must return a trajectory for each of its players: want %d, got %d", p.players,
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
		if first == nil {
			first = t
		}
	}
	if first == nil {
		return nil, errNoTrajectory
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byFirst[first] = all
	return first, nil
}

// split makes the groups of each player from those of the gather.
func (p *playerTrajectories) split(groups []*TrajectoryGroup) [][]*TrajectoryGroup {
	out := make([][]*TrajectoryGroup, p.players)
	for _, g := range groups {
		for player := range out {
			own := g.Clone()
			own.Trajectories = nil
			for _, first := range g.Trajectories {
				if t := p.byFirst[first][player]; t != nil {
					own.Trajectories = append(own.Trajectories, t)
				}
			}
			out[player] = append(out[player], own)
		}
	}
	return out
}
