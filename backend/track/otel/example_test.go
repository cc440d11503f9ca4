package otel_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/otel"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A rollout becomes a trace, which a collector receives: here one of the example, which lists the spans.
func Example() {
	ctx := context.Background()
	collector := httptest.NewServer(http.HandlerFunc(list))
	defer collector.Close()
	spans, err := otel.New(&otel.Options{URL: collector.URL + "/v1/traces"})
	check(err)

	model := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	play := func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		return t, err
	}
	_, err = art.GatherGroups(ctx, []string{"2+2"}, play, &art.GatherOptions{GroupSize: 1, Events: spans.Events()})
	check(err)

	check(spans.Close()) // exports what waits
	// Output:
	// chat player
	// invoke_agent player
}

// list prints the names of the spans that are exported.
func list(_ http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		check(err)
		body = unzipped
	}
	data, err := io.ReadAll(body)
	check(err)
	var traces tracepb.TracesData
	check(proto.Unmarshal(data, &traces))
	var names []string
	for _, resource := range traces.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				names = append(names, span.Name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Println(name)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
