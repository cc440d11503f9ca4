package otel

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// export sends a completion, and returns what there is to read of it.
func export(t *testing.T, o *Options) (string, error) {
	t.Helper()
	var mu sync.Mutex
	var log strings.Builder
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(err.Error())
	}))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })
	o.Logger, o.Timeout = slog.New(slog.NewTextHandler(&log, nil)), 5*time.Second
	tracker, err := New(o)
	require.NoError(t, err)
	m := art.NewModel("m", &art.ModelOptions{Events: tracker.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: func(
		context.Context, *art.Model, *art.ChatRequest,
	) (art.Message, error) {
		return art.Assistant("a"), nil
	}}))
	_, err = m.Chat(t.Context(), art.NewTrajectory(art.User("u")), nil)
	require.NoError(t, err)
	err = tracker.Close()
	mu.Lock()
	defer mu.Unlock()
	return log.String(), err
}

// TestTracker_Secret: a custom header, of the options or of the environment, goes to no other host, and not into errors
// and logs, of traces, metrics and scores.
func TestTracker_Secret(t *testing.T) {
	headers := map[string]string{"x-honeycomb-team": secrettest.Key}
	for name, options := range map[string]func(t *testing.T, url string) *Options{
		"traces": func(_ *testing.T, url string) *Options { return &Options{URL: url + "/v1/traces", Headers: headers} },
		"environment": func(t *testing.T, url string) *Options {
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-honeycomb-team="+secrettest.Key)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
			return &Options{}
		},
		"metrics": func(_ *testing.T, url string) *Options {
			return &Options{URL: url + "/v1/traces", MetricsURL: url + "/v1/metrics", Headers: headers}
		},
	} {
		t.Run(name, func(t *testing.T) {
			secrettest.Check(t, func(t *testing.T, url string) (string, error) { return export(t, options(t, url)) })
		})
	}
	secrettest.Check(t, func(t *testing.T, url string) (string, error) {
		return "", Weave(url, "team", "games", secrettest.Key).Scores.send(t.Context(), score{})
	})
}

// TestTracker_SecretPartial: nor does a partial success in protobuf.
func TestTracker_SecretPartial(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		data, err := proto.Marshal(&collector.ExportTraceServiceResponse{
			PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "not for " + r.Header.Get("X-Team")},
		})
		if err == nil {
			_, _ = w.Write(data)
		}
	}))
	defer server.Close()
	log, err := export(t, &Options{URL: server.URL, Headers: map[string]string{"X-Team": secrettest.Key}})
	require.ErrorContains(t, err, "not for ****")
	require.Empty(t, secrettest.Leaks(err.Error()+log))
}

// TestNew_Certificate: certificates of the environment are used, and a file that is none is an error.
func TestNew_Certificate(t *testing.T) {
	got := make(chan string, 9)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, data, 0o600))
	options := func() *Options {
		return &Options{URL: server.URL + "/v1/traces", MetricsURL: server.URL + "/v1/metrics"}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, file)
			o := options()
			if strings.Contains(name, "TRACES") {
				o.MetricsURL = ""
			}
			for len(got) > 0 {
				<-got
			}
			log, err := export(t, o)
			require.NoError(t, err, log)
			require.Equal(t, "/v1/traces", <-got)
			t.Setenv(name, os.Args[0])
			_, err = New(options())
			require.ErrorContains(t, err, name)
		})
	}
}
