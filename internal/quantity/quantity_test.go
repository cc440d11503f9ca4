package quantity

import "testing"

func TestOf_Forms(t *testing.T) {
	for _, c := range []struct {
		n         int
		one, want string
	}{
		{1, "group", "1 group"}, {0, "group", "0 groups"}, {2, "group", "2 groups"}, {60, "trajectory", "60 trajectories"},
		{1, "trajectory", "1 trajectory"}, {2, "key", "2 keys"}, {3, "batch", "3 batches"}, {2, "loss", "2 losses"},
		{2, "failed rollout", "2 failed rollouts"}, {2, "KV head", "2 KV heads"}, {5, "matrix row", "5 matrix rows"},
		{-1, "step", "-1 steps"}, {2, "reply", "2 replies"}, {2, "y", "2 ys"},
	} {
		if got := Of(c.n, c.one); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestBytes_Units(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 MB", 111_400_000: "111.4 MB", 999_999_999: "1000.0 MB",
		2_400_000_000: "2.40 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
