package otel

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/track"
)

// Score is an evaluation of a trace, for services that do not read evaluation events.
type Score struct {
	Trace, Span string // in hexadecimal
	Name        string
	Value       float64
	Explanation string // empty unless [Options].Content is set
	Time        time.Time
}

// Scorer sends scores to a service. [Weave] and [Langfuse] have one.
type Scorer interface {
	send(ctx context.Context, s Score) error
}

// Langfuse returns options for Langfuse at a host, such as "https://cloud.langfuse.com": traces, and scores of them.
func Langfuse(host, publicKey, secretKey string) *Options {
	host = strings.TrimRight(host, "/")
	headers := map[string]string{
		"Authorization":                basic(publicKey, secretKey),
		"x-langfuse-ingestion-version": "4",
	}
	return &Options{
		URL: host + "/api/public/otel/v1/traces", Headers: headers,
		Scores: &langfuse{host + "/api/public/scores", headers},
	}
}

// Weave returns options for W&B Weave: traces, and feedback on them. host is empty for "https://trace.wandb.ai", or
// that of a trace server of one's own. Feedback is sent to the call with the id of the span; that Weave gives its calls
// these ids is documented nowhere, and was not checked against the service.
func Weave(host, entity, project, apiKey string) *Options {
	if host == "" {
		host = "https://trace.wandb.ai"
	}
	host = strings.TrimRight(host, "/")
	headers := map[string]string{"Authorization": basic("api", apiKey), "project_id": entity + "/" + project}
	return &Options{
		URL: host + "/otel/v1/traces", Headers: headers,
		Resource: map[string]string{"wandb.entity": entity, "wandb.project": project},
		Scores:   &weave{host + "/feedback/create", entity + "/" + project, headers},
	}
}

// MLflow returns options for the traces of an MLflow server, in the experiment of the given id.
func MLflow(host, experimentID string) *Options {
	return &Options{
		URL: strings.TrimRight(host, "/") + "/v1/traces", Headers: map[string]string{"x-mlflow-experiment-id": experimentID},
	}
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// langfuse sends scores to Langfuse. The id makes a repeated one replace the first.
type langfuse struct {
	url     string
	headers map[string]string
}

func (l *langfuse) send(ctx context.Context, s Score) error {
	body := map[string]any{
		"id": s.Trace + "-" + s.Name, "traceId": s.Trace, "observationId": s.Span, "name": s.Name, "value": s.Value,
		"dataType": "NUMERIC", "timestamp": s.Time.UTC().Format(time.RFC3339Nano),
	}
	if s.Explanation != "" {
		body["comment"] = s.Explanation
	}
	return track.PostJSON(ctx, l.url, l.headers, body)
}

// weave sends scores as feedback on calls.
type weave struct {
	url, project string
	headers      map[string]string
}

func (w *weave) send(ctx context.Context, s Score) error {
	payload := map[string]any{"value": s.Value}
	if s.Explanation != "" {
		payload["explanation"] = s.Explanation
	}
	return track.PostJSON(ctx, w.url, w.headers, map[string]any{
		"project_id": w.project, "weave_ref": "weave:///" + w.project + "/call/" + s.Span,
		"feedback_type": s.Name, "payload": payload,
	})
}
