package openpipe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/openpipe"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A completion is reported with the reward of its rollout; here to a server of the example, which prints both.
func Example() {
	ctx := context.Background()
	service := httptest.NewServer(http.HandlerFunc(show))
	defer service.Close()
	log, err := openpipe.New(&openpipe.Options{APIKey: "opk-...", BaseURL: service.URL})
	check(err)

	model := art.NewModel("player", &art.ModelOptions{Events: log.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	play := func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		t.Reward = 0.5
		return t, err
	}
	_, err = art.GatherGroups(ctx, []string{"2+2"}, play, &art.GatherOptions{GroupSize: 1, Events: log.Events()})
	check(err)

	check(log.Close()) // reports what waits
	// Output:
	// /report: player was asked "2+2", reward 0.5
}

// show prints a report.
func show(_ http.ResponseWriter, r *http.Request) {
	var report struct {
		Request struct {
			Model    string
			Messages []art.Message
			Metadata map[string]string
		} `json:"reqPayload"`
	}
	check(json.NewDecoder(r.Body).Decode(&report))
	asked := report.Request
	fmt.Printf("%s: %s was asked %q, reward %s\n", r.URL.Path, asked.Model, asked.Messages[0].Content,
		asked.Metadata["reward"])
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
