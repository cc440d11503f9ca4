package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/metrics"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A server counts its requests, for Prometheus.
func Example() {
	model := art.NewModel("player", nil)
	check(model.Register(context.Background(), &arttest.Backend{Reply: arttest.Script("Hello!")})) // a fake
	models := func() []*art.Model { return []*art.Model{model} }
	handler, err := server.Handler(models, &server.Config{Metrics: metrics.New()}, nil)
	check(err)
	listening := httptest.NewServer(handler)
	defer listening.Close()

	body := `{"model": "player", "messages": [{"role": "user", "content": "Hi"}]}`
	response, err := listening.Client().Post(listening.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(body))
	check(err)
	check(response.Body.Close())

	response, err = listening.Client().Get(listening.URL + "/metrics")
	check(err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "vllm:request_success_total{") {
			fmt.Println(lines.Text())
		}
	}
	// Output: vllm:request_success_total{finished_reason="stop",model_name="player"} 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
