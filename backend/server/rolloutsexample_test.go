package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// Agents in other processes and languages open rollouts, talk to the model under the base URL of each, and close them
// with a reward. The training loop takes complete groups.
func ExampleRollouts() {
	ctx := context.Background()
	m := art.NewModel("player", nil)
	check(m.Register(ctx, &arttest.Backend{Reply: arttest.Script("heads", "tails")})) // or that of backend/local

	rollouts, err := server.NewRollouts(nil)
	check(err)
	handler, err := server.Handler(func() []*art.Model { return []*art.Model{m} }, &server.Config{Rollouts: rollouts},
		&art.HandlerOptions{Keys: []string{"secret"}})
	check(err)
	listening := httptest.NewServer(handler)
	defer listening.Close()

	go playCoins(listening.URL) // in truth another program
	for m.Step() < 2 {
		group, err := rollouts.Next(ctx)
		if errors.Is(err, io.EOF) { // after rollouts.Close
			break
		}
		check(err)
		result, err := m.Train(ctx, []*art.TrajectoryGroup{group}, &art.TrainConfig{LearningRate: 1e-4})
		check(err)
		fmt.Printf("%v: %d trajectories, step %d\n", group.Metadata["group"], len(group.Trajectories), result.Step)
	}
	// Output:
	// game-0: 2 trajectories, step 1
	// game-1: 2 trajectories, step 2
}

// playCoins plays two groups of two rollouts.
func playCoins(url string) {
	for i := range 4 {
		info := post(url+"/v1/rollouts", fmt.Sprintf(`{"model": "player", "group": "game-%d", "group_size": 2}`, i/2))
		_, id, _ := strings.Cut(info, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		post(url+"/r/"+id+"/v1/chat/completions", `{"model": "any", "messages": [{"role": "user", "content": "Call it."}]}`)
		post(url+"/v1/rollouts/"+id+"/close", fmt.Sprintf(`{"reward": %d}`, i%2))
	}
}

// post sends JSON and returns the answer.
func post(url, body string) string {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	check(err)
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	check(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= 300 {
		panic(string(answer))
	}
	return string(answer)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
