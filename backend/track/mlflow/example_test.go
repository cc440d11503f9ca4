package mlflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/mlflow"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A training is logged to an MLflow server, here a small one of the example.
func Example() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(answer))
	defer server.Close()
	flow, err := mlflow.New(&mlflow.Options{URL: server.URL, Artifacts: new(false)})
	check(err)

	model := art.NewModel("player", &art.ModelOptions{Project: "games", Events: flow.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 0}, {Reward: 1}}}}
	_, err = model.Train(ctx, groups, nil)
	check(err)

	check(flow.Close()) // sends what waits
	// Output: train/reward of step 0: 0.5
}

// answer answers for a server with one experiment and one run, and prints the rewards that it is sent.
func answer(w http.ResponseWriter, r *http.Request) {
	reply := `{}`
	switch {
	case strings.HasSuffix(r.URL.Path, "/experiments/get-by-name"):
		reply = `{"experiment": {"experiment_id": "1"}}`
	case strings.HasSuffix(r.URL.Path, "/runs/create"):
		reply = `{"run": {"info": {"run_id": "1"}}}`
	case strings.HasSuffix(r.URL.Path, "/runs/log-batch"):
		var batch struct {
			Metrics []struct {
				Key   string
				Value float64
				Step  int
			}
		}
		check(json.NewDecoder(r.Body).Decode(&batch))
		for _, m := range batch.Metrics {
			if m.Key == "train/reward" {
				fmt.Printf("%s of step %d: %v\n", m.Key, m.Step, m.Value)
			}
		}
	}
	fmt.Fprintln(w, reply)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
