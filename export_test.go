package art

import "time"

// SetBegan makes a trajectory begin at a time, with its reading of the monotonic clock.
func SetBegan(t *Trajectory, began time.Time) { t.Start, t.began = began.UTC().Round(0), began }
