package art

import "context"

// GroupSource is where a training loop takes complete groups from: rollouts that other processes run against a server,
// for example. It is safe for concurrent use; each group is returned once.
type GroupSource interface {
	// Next waits until a group is complete, removes it from the source and returns it. It returns [io.EOF] when there is
	// none and will be none, and an error that wraps ctx's when ctx ends first.
	Next(ctx context.Context) (*TrajectoryGroup, error)
}
