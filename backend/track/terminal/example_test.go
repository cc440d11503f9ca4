package terminal_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// Each gather and each training that is over leaves a line; on a terminal another line shows the one that runs.
func Example() {
	ctx := context.Background()
	var output bytes.Buffer
	line := terminal.New(&terminal.Options{Output: &output}) // terminal.New(nil) draws on standard error

	model := art.NewModel("player", &art.ModelOptions{Events: line})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	play := func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		return t, err
	}
	groups, err := art.GatherGroups(ctx, []string{"2+2", "3+3"}, play, &art.GatherOptions{GroupSize: 4, Events: line})
	check(err)
	_, err = model.Train(ctx, groups, nil)
	check(err)

	for lines := bufio.NewScanner(&output); lines.Scan(); {
		title, _, _ := strings.Cut(lines.Text(), "  ") // after it the reward, tokens per second and the time
		fmt.Println(title)
	}
	// Output:
	// gather 8/8
	// train player step 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
