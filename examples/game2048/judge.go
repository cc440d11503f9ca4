package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
)

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward of the game itself. RULER with
// a rule-based judge belongs here; until package ruler has a judge, "ruler" is an error.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return nil, errors.New("-judge ruler: package ruler has no judge yet; without the flag the game gives rewards")
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
}
