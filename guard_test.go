package art_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// explode panics: the maps of a literal trajectory are nil.
func explode(t *art.Trajectory) { t.Metrics["x"] = 1 } // line 16

// The error of a gather whose rollout panicked says where.
func TestGather_PanicIsLocated(t *testing.T) {
	_, err := art.GatherGroups(t.Context(), numbers(3), func(_ context.Context, scenario int) (*art.Trajectory, error) {
		tr := &art.Trajectory{}
		if scenario == 2 {
			explode(tr)
		}
		return tr, nil
	}, &art.GatherOptions{GroupSize: 2, Concurrency: 1})
	const want = `scenario 2, attempt 0: panic: assignment to entry in nil map, ` +
		`at art_test\.explode \(\S*guard_test\.go:16\), called by art_test\.TestGather_PanicIsLocated\.func1 ` +
		`\(\S*guard_test\.go:\d+\) \(`
	if !errors.Is(err, art.ErrTooManyFailures) || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// The stack of a failure is that of the rollout: neither the runtime's frames above it nor the gather's below it.
func TestGather_PanicStackIsTrimmed(t *testing.T) {
	group, err := art.Gather(t.Context(), numbers(1), func(context.Context, int) (*art.Trajectory, error) {
		explode(&art.Trajectory{})
		return nil, nil
	}, &art.GatherOptions{MaxFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(group.Failures[0].Stack), "\n")
	want := []string{
		`/art_test\.explode$`, `^\t.*/guard_test\.go:16$`, `/art_test\.TestGather_PanicStackIsTrimmed\.func1$`, `^\t.*/guard_test\.go:\d+$`,
	}
	if len(lines) != len(want) {
		t.Fatalf("stack:\n%s", group.Failures[0].Stack)
	}
	for i, line := range lines {
		if !regexp.MustCompile(want[i]).MatchString(line) {
			t.Errorf("line %d is %q, want %s", i, line, want[i])
		}
	}
	if !strings.Contains(group.Failures[0].Message, "guard_test.go:16") {
		t.Errorf("message %q", group.Failures[0].Message)
	}
}

// A panic during a panic, a nil dereference, deep recursion, and hooks: the location of each is reported.
func TestGather_PanicKinds(t *testing.T) {
	var nothing *art.Trajectory
	var deep func(n int)
	deep = func(n int) {
		if n == 0 {
			panic(fs.ErrExist)
		}
		deep(n - 1)
	}
	for name, c := range map[string]struct {
		rollout func()
		want    string
	}{
		"nil":      {func() { nothing.Reward = 1 }, `nil pointer dereference, at art_test\.TestGather_PanicKinds\.func2 \(`},
		"again":    {func() { defer func() { panic("second") }(); explode(&art.Trajectory{}) }, `second.*, at art_test\.TestGather_PanicKinds\.func3\.1 \(`},
		"deep":     {func() { deep(99) }, `file already exists, at art_test\.TestGather_PanicKinds\.func1 \(.*, called by \.\.\. \(fix`},
		"division": {func() { zero := 0; fmt.Println(1 / zero) }, `divide by zero, at art_test\.TestGather_PanicKinds\.func5 \(`},
	} {
		_, err := art.Gather(t.Context(), numbers(1), func(context.Context, int) (*art.Trajectory, error) {
			c.rollout()
			return &art.Trajectory{}, nil
		}, nil)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) || len(err.Error()) > 1000 {
			t.Errorf("%s: error %v\nwant %s", name, err, c.want)
		}
	}
	for name, opts := range map[string]*art.GatherOptions{
		"after hook":     {GroupSize: 1, After: func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) { panic("oops") }},
		"event function": {GroupSize: 1, Events: &art.Events{RolloutEnd: func(art.RolloutEnd) { panic("oops") }}},
	} {
		_, err := art.GatherGroups(t.Context(), numbers(1), func(context.Context, int) (*art.Trajectory, error) {
			return &art.Trajectory{}, nil
		}, opts)
		if err == nil || !strings.Contains(err.Error(), name+": panic: oops, at art_test.TestGather_PanicKinds.func") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The error of a panic whose value is an error wraps it.
func TestGather_PanicUnwraps(t *testing.T) {
	_, err := art.Gather(t.Context(), numbers(1),
		func(context.Context, int) (*art.Trajectory, error) { panic(fs.ErrExist) }, nil)
	if !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
