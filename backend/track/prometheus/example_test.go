package prometheus_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/prometheus"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A program that trains serves what Prometheus asks for.
func Example() {
	ctx := context.Background()
	watch := prometheus.New(nil)
	registry := client.NewRegistry()
	registry.MustRegister(watch)
	metrics := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) // http.Handle("/metrics", ...)
	defer metrics.Close()

	model := art.NewModel("player", &art.ModelOptions{Events: watch.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 0}, {Reward: 1}}}}
	_, err := model.Train(ctx, groups, nil)
	check(err)

	response, err := metrics.Client().Get(metrics.URL)
	check(err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "art_reward{") || strings.HasPrefix(lines.Text(), "art_train_step{") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// art_reward{model_name="player",split="train"} 0.5
	// art_train_step{model_name="player"} 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
