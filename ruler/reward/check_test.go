package reward_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/ruler/reward"
)

func TestCheck(t *testing.T) {
	group := func(rewards ...float64) *art.TrajectoryGroup {
		g := &art.TrajectoryGroup{}
		for _, r := range rewards {
			g.Trajectories = append(g.Trajectories, &art.Trajectory{Reward: r})
		}
		return g
	}
	calls := 0.0
	report := reward.Check([]*art.TrajectoryGroup{group(1, 3), group(2, 2), nil, group(-1, -2, 7), {}},
		func(t *art.Trajectory) (float64, error) {
			switch t.Reward {
			case -1:
				return 0, errors.New("no answer")
			case -2:
				return math.NaN(), nil
			case 7:
				calls++
				return calls, nil
			}
			return t.Reward, nil
		})
	want := &reward.Report{
		Groups: 3, Trajectories: 7, Errors: 1, NotFinite: 1, Changing: 1, Low: 1, High: 3, Mean: 9.0 / 5, Spread: 1.0 / 3, Ties: 0.5,
		ZeroVariance: 2.0 / 3, Err: report.Err,
	}
	arttest.WantEqual(t, "report", report, want)
	for _, text := range []string{"groups: 3, trajectories: 7, rewards from 1 to 3", "no answer", "NaN or infinite",
		"the second time", "most groups"} {
		if !strings.Contains(report.String(), text) {
			t.Errorf("no %q in %s", text, report)
		}
	}
	none := reward.Check(nil, nil)
	arttest.WantEqual(t, "of nothing", none, &reward.Report{})
}
