package art_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
)

// Each player has the trajectories that rollouts returned for it, in the order of scenarios and attempts. A player
// without one is left out, and a failure is everybody's.
func TestGatherPlayers(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		games, err := art.GatherPlayers(t.Context(), numbers(3), 2, func(
			ctx context.Context, scenario int,
		) ([]*art.Trajectory, error) {
			r := art.Rand(ctx).Float64()
			time.Sleep(time.Duration(r * float64(time.Second)))
			switch scenario {
			case 1:
				return nil, boom
			case 2:
				return []*art.Trajectory{nil, {Reward: r}}, nil
			}
			return []*art.Trajectory{rewarded(r), rewarded(-r)}, nil
		}, &art.GatherOptions{GroupSize: 3, MaxFailures: 3})
		if err != nil {
			t.Fatal(err)
		}
		first, second := rewards(games[0]), rewards(games[1])
		if len(first) != 3 || len(first[0]) != 3 || len(first[2]) != 0 || len(second[2]) != 3 {
			t.Fatalf("rewards %v and %v", first, second)
		}
		for i, r := range first[0] {
			if second[0][i] != -r {
				t.Errorf("attempt %d: rewards %v and %v", i, r, second[0][i])
			}
		}
		for player := range 2 {
			if g := games[player][1]; len(g.Failures) != 3 || len(g.Trajectories) != 0 {
				t.Errorf("player %d: %+v", player, g)
			}
			for _, trajectory := range games[player][2].Trajectories {
				if trajectory.Duration <= 0 {
					t.Errorf("player %d: duration %v", player, trajectory.Duration)
				}
			}
		}
		games[0][0].Metrics["x"] = 1
		if _, shared := games[1][0].Metrics["x"]; shared {
			t.Error("the groups of two players share their metrics")
		}
	})
}

// What is not one trajectory for each player is a failure that says so.
func TestGatherPlayers_Wrong(t *testing.T) {
	for want, play := range map[string]func() []*art.Trajectory{
		"want 2, got 1": func() []*art.Trajectory { return []*art.Trajectory{rewarded(1)} },
		"one trajectory for two players": func() []*art.Trajectory {
			same := rewarded(1)
			return []*art.Trajectory{same, same}
		},
		"neither a trajectory nor": func() []*art.Trajectory { return []*art.Trajectory{nil, nil} },
	} {
		_, err := art.GatherPlayers(t.Context(), numbers(1), 2, func(
			context.Context, int,
		) ([]*art.Trajectory, error) {
			return play(), nil
		}, nil)
		wantErr(t, err, art.ErrTooManyFailures, want)
	}
	games, err := art.GatherPlayers[int](t.Context(), nil, 0, nil, &art.GatherOptions{
		After: func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) { return nil, nil },
	})
	wantErr(t, err, art.ErrInvalid, "players is 0", "rollout is nil", "After is set")
	if !reflect.ValueOf(games).IsNil() {
		t.Errorf("games: %v", games)
	}
}
