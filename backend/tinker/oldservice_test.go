package tinker_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// answering serves a fake service whose answers to a route are others once it is armed.
func answering(t *testing.T, armed *atomic.Bool, route string, answer func(w http.ResponseWriter)) string {
	t.Helper()
	return serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if armed.Load() && strings.HasSuffix(r.URL.Path, "/"+route) {
				_, _ = io.Copy(io.Discard, r.Body)
				answer(w)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
}

// body answers with a body of a media type.
func body(media string, data []byte) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(data)
	}
}

// status answers with an error.
func status(code int, detail string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		data, _ := json.Marshal(map[string]string{"detail": detail})
		w.WriteHeader(code)
		_, _ = w.Write(data)
	}
}

// checkService fails unless an error is one of the service, with a text that says what to do, and without the key.
func checkService(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, client.ErrService) || !strings.Contains(err.Error(), text) ||
		strings.Contains(err.Error(), "tml-secret") {
		t.Errorf("got %v, want %q", err, text)
	}
}

// TestService_NaN: logprobs that are no numbers are errors, in each dialect, and never a probability of 1.
func TestService_NaN(t *testing.T) {
	nan := float32(math.NaN())
	sample := tinkerwire.SampleOutput{
		Sequences: []tinkerwire.Sequence{{StopReason: "stop", Tokens: []int32{65, 66}, Logprobs: []float32{-1, nan}}},
	}
	whole := sample
	whole.Sequences = []tinkerwire.Sequence{{StopReason: "stop", Tokens: []int32{65}, Logprobs: []float32{-1}}}
	whole.PromptLogprobs = []float32{nan, -1, nan}
	const inJSON = `{"type":"sample","sequences":[{"stop_reason":"stop","tokens":[65,66],"logprobs":[-1,null]}]}`
	const promptInJSON = `{"type":"sample","sequences":[{"stop_reason":"stop","tokens":[65],"logprobs":[-1]}],` +
		`"prompt_logprobs":[null,-1,null]}`
	const forward = `{"loss_fn_outputs":[{"logprobs":{"data":[-1,-1,null],"dtype":"float32","shape":[3]}},` +
		`{"logprobs":{"data":[-1],"dtype":"float32","shape":[1]}}],"metrics":{"loss:sum":1}}`
	chat := func(m *art.Model) error {
		_, err := m.Chat(t.Context(), art.NewTrajectory(art.User("hi")), nil)
		return err
	}
	score := func(m *art.Model) error {
		_, _, err := m.Backend().(driver.Sampler).Logprobs(t.Context(), m, []int32{65, 66, 67})
		return err
	}
	train := func(m *art.Model) error {
		_, err := loop.ForwardBackward(t.Context(), m, data(false), credit.CrossEntropy, nil)
		return err
	}
	for name, test := range map[string]struct {
		media string
		data  []byte
		call  func(m *art.Model) error
		text  string
	}{
		"a sample":         {tinkerwire.ProtoType, sample.Proto(), chat, "the sample: a logprob is NaN"},
		"a sample, JSON":   {tinkerwire.JSONType, []byte(inJSON), chat, "the sample: a logprob is NaN"},
		"a prompt":         {tinkerwire.ProtoType, whole.Proto(), score, "the prompt: a logprob is NaN"},
		"a prompt, JSON":   {tinkerwire.JSONType, []byte(promptInJSON), score, "the prompt: a logprob is NaN"},
		"training, JSON":   {tinkerwire.JSONType, []byte(forward), train, "datum 0: a logprob is NaN"},
		"what to do of it": {tinkerwire.ProtoType, sample.Proto(), chat, "lower learning rate"},
	} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			address := answering(t, &armed, "retrieve_future", body(test.media, test.data))
			_, m := open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
			armed.Store(true)
			checkService(t, test.call(m), test.text)
		})
	}
}

// TestRegister_OtherBase: a run whose checkpoint is of another base at the service is not continued.
func TestRegister_OtherBase(t *testing.T) {
	for name, test := range map[string]struct {
		route  string
		answer func(http.ResponseWriter)
		want   error
		text   string
	}{
		"the service tells": {"weights_info", body(tinkerwire.JSONType, []byte(`{"base_model":"org/other","is_lora":true}`)),
			art.ErrBaseModel, `for the base model "org/other", and the model is one of "org/fake" (use the service`},
		"it has no such route": {"weights_info", status(http.StatusNotFound, "Not Found"), nil, ""},
		"it refuses them": {"load_weights", status(http.StatusBadRequest, "the weights are of another base model"),
			art.ErrInvalid, "the weights are of another base model (correct what the service refuses)"},
	} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			opts := client.Options{
				BaseURL: answering(t, &armed, test.route, test.answer), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(),
			}
			first, m := open(t, opts)
			train(t, m)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			second, err := client.Open(t.Context(), &opts)
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			again := art.NewModel("player", &art.ModelOptions{Base: "org/fake"})
			err = again.Register(t.Context(), second)
			switch {
			case test.want == nil && (err != nil || again.Step() != 1):
				t.Errorf("step %d, error %v", again.Step(), err)
			case test.want != nil && (!errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text)):
				t.Errorf("got %v, want %s", err, test.text)
			}
		})
	}
}

// TestService_Older: a service without a route, or without protobuf, is said to be older, with what to do; routes that
// only newer ones have are not needed.
func TestService_Older(t *testing.T) {
	train := func(m *art.Model) error {
		_, err := loop.ForwardBackward(t.Context(), m, data(false), credit.CrossEntropy, nil)
		if err == nil {
			_, err = loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
		}
		if err == nil {
			_, err = m.Publish(t.Context(), nil, nil)
		}
		if err == nil {
			_, err = m.Chat(t.Context(), art.NewTrajectory(art.User("hi")), nil)
		}
		return err
	}
	const route, noProto = "older than this client, and has no such route", "set Options.JSON"
	for _, test := range []struct {
		route  string
		answer func(http.ResponseWriter)
		text   string
	}{
		{"forward_backward", status(http.StatusNotFound, "Not Found"), route},
		{"forward_backward", status(http.StatusMethodNotAllowed, "Method Not Allowed"), route},
		{"forward_backward", status(http.StatusUnsupportedMediaType, "want JSON"), noProto},
		{"forward_backward", status(http.StatusUnprocessableEntity, "no JSON"), noProto},
		{"optim_step", status(http.StatusNotFound, "POST /api/v1/optim_step is not served"), route},
		{"save_weights", status(http.StatusNotImplemented, "not yet"), route},
		{"save_weights_for_sampler", status(http.StatusNotFound, "Not Found"), route},
		{"asample", status(http.StatusNotFound, "Not Found"), route},
		{"asample", status(http.StatusNotFound, "there is no sampling session"), "register the model again"},
	} {
		t.Run(test.route+" "+test.text, func(t *testing.T) {
			var armed atomic.Bool
			address := answering(t, &armed, test.route, test.answer)
			_, m := open(t, client.Options{
				BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(), RetryTime: 1,
			})
			armed.Store(true)
			err := train(m)
			if err == nil || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "tml-secret") {
				t.Errorf("got %v, want %q", err, test.text)
			}
		})
	}
	for _, unneeded := range []string{"config", "get_server_capabilities", "finish", "session_heartbeat"} {
		var armed atomic.Bool
		armed.Store(true)
		address := answering(t, &armed, unneeded, status(http.StatusNotFound, "Not Found"))
		_, m := open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
		if err := train(m); err != nil {
			t.Errorf("without %s: %v", unneeded, err)
		}
	}
}
