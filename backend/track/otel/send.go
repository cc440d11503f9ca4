package otel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/goart-dev/art/internal/secret"
)

// Traces that wait are sent together: up to maxTraces, in requests of some maxSpans. Further ones than maxBatches are
// dropped.
const (
	maxBatches = 1024
	maxTraces  = 128
	maxSpans   = 512
	batchDelay = time.Second
)

// resourceOf returns the attributes of the process that the options set.
func resourceOf(o Options) *resource.Resource {
	var attributes []attribute.KeyValue
	for name, value := range o.Resource {
		attributes = append(attributes, attribute.String(name, value))
	}
	return resource.NewSchemaless(attributes...)
}

// traceResource returns them as a message, with those of OTEL_RESOURCE_ATTRIBUTES that the options do not set.
func traceResource(o Options) *resourcepb.Resource {
	all, err := resource.Merge(resource.Environment(), resourceOf(o))
	if err != nil { // of schemas, which ours has none of
		all = resourceOf(o)
	}
	out := &resourcepb.Resource{}
	for _, a := range all.Attributes() {
		out.Attributes = append(out.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{
			Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.String()},
		}})
	}
	return out
}

// send exports traces, in as few requests as may be.
func (t *Tracker) send(ctx context.Context, traces []batch) (lost int, err error) {
	for len(traces) > 0 {
		var parts [][]byte
		n, count := 0, 0
		for n < len(traces) && count < maxSpans {
			parts, count = append(parts, traces[n].spans), count+traces[n].count
			n++
		}
		spans := slices.Concat(parts...)
		failed, problem := t.export(ctx, spans, traces[:n])
		if problem != nil {
			lost, err = lost+failed, problem
		}
		traces = traces[n:]
	}
	return lost, err
}

// export sends the spans of traces, and then their scores.
func (t *Tracker) export(ctx context.Context, spans []byte, traces []batch) (lost int, err error) {
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "github.com/goart-dev/art"}}
	scope.ProtoReflect().SetUnknown(spans) // what is written already goes through as it is
	request := &tracepb.ResourceSpans{Resource: t.resource, ScopeSpans: []*tracepb.ScopeSpans{scope}}
	if err := t.client.UploadTraces(ctx, []*tracepb.ResourceSpans{request}); err != nil {
		return len(traces), fmt.Errorf("traces were not sent: %w", err)
	}
	if t.opts.Scores == nil {
		return 0, nil
	}
	for _, trace := range traces {
		for _, s := range trace.scores {
			ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
			problem := t.opts.Scores.send(ctx, s)
			cancel()
			if problem != nil {
				lost, err = lost+1, fmt.Errorf("a score was not sent: %w", problem)
			}
		}
	}
	return lost, err
}

// finish sends what was counted.
func (t *Tracker) finish(ctx context.Context) error {
	var all []error
	if t.metrics != nil {
		if err := t.metrics.meters.Shutdown(ctx); err != nil {
			all = append(all, fmt.Errorf("otel: metrics: %w", err))
		}
	}
	if err := t.client.Stop(ctx); err != nil {
		all = append(all, fmt.Errorf("otel: %w", err))
	}
	return errors.Join(all...)
}

// newClient returns the client for a signal, "TRACES" or "METRICS": the exporters' own would send their headers
// wherever they are redirected, and put into errors whatever a receiver answers. In return the variables of
// OpenTelemetry that name certificates are read here; the others are read by the exporters.
func newClient(signal string, timeout time.Duration) (*http.Client, error) {
	config, err := tlsConfig(signal)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if config != nil {
		transport.TLSClientConfig = config
	}
	return secret.Client(&http.Client{Transport: masking{transport}, Timeout: timeout}), nil
}

// variable returns the value of a variable of a signal, and otherwise of all signals, and which it is.
func variable(signal, name string) (which, value string) {
	all, own := "OTEL_EXPORTER_OTLP_"+name, "OTEL_EXPORTER_OTLP_"+signal+"_"+name
	if value := strings.TrimSpace(os.Getenv(own)); value != "" {
		return own, value
	}
	return all, strings.TrimSpace(os.Getenv(all))
}

// tlsConfig returns what the environment says of certificates, nil for nothing.
func tlsConfig(signal string) (*tls.Config, error) {
	which, file := variable(signal, "CERTIFICATE")
	config := &tls.Config{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", which, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: %s has no certificate", which, file)
		}
	}
	which, certificate := variable(signal, "CLIENT_CERTIFICATE")
	_, key := variable(signal, "CLIENT_KEY")
	if certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", which, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if config.RootCAs == nil && config.Certificates == nil {
		return nil, nil
	}
	return config, nil
}

// maxAnswer bounds the body of an answer, in bytes.
const maxAnswer = 4 << 20

// masking replaces what the headers of a request say in the body of an answer that is a success: the message of a
// partial success is put into errors too, and into the log of the SDK. Lengths stay, on which protobuf depends.
type masking struct{ next http.RoundTripper }

func (m masking) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(req)
	if err != nil || response.StatusCode/100 != 2 {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err = cmp.Or(err, response.Body.Close()); err != nil {
		return nil, err
	}
	secrets := secret.OfHeader(req.Header)
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		body, secrets = []byte(secret.Hide(string(body), secrets)), nil
	}
	for _, s := range secrets {
		if len(s) >= 6 { // shorter ones may be anywhere in protobuf
			body = bytes.ReplaceAll(body, []byte(s), bytes.Repeat([]byte("*"), len(s)))
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
