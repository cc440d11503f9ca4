package tinker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
)

// The answers of SkyRL 0.3.0 to what it does not take, recorded from its server.
const (
	skyrlConfig = `{"pjwt_auth_enabled":false}`
	skyrlNoTags = `{"detail":[{"type":"missing","loc":["body","tags"],"msg":"Field required",` +
		`"input":{"sdk_version":"0"}}]}`
	skyrlNoProto = `{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary ` +
		`or object to extract fields from","input":"abc"}]}`
	skyrlNoRoute = `{"detail":"Not Found"}`
	skyrlTwice   = `{"detail":"Checkpoint 'twice' already exists for model 'model_53417d72'"}`
)

// likeSkyRL lets our server answer as SkyRL's with its JAX backend does: tags are required, protobuf is not read, seeds
// have 31 bits, results are in JSON, without metrics and without the logprob of the first token of a prompt, and there
// are archives only of weights for sampling.
func likeSkyRL(h http.Handler, archive []byte) http.Handler {
	var stored sync.Map // the paths of the archives there are
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("Accept", "application/json")
		var sent struct {
			Tags     []string
			Path     string
			ModelID  string               `json:"model_id"`
			Sampling struct{ Seed int64 } `json:"sampling_params"`
		}
		_ = json.Unmarshal(body, &sent)
		route := strings.TrimPrefix(r.URL.Path, "/api/v1/")
		refuse := func(status int, answer string) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		}
		if route == "save_weights_for_sampler" && sent.Path != "" {
			stored.Store("training_runs/"+sent.ModelID+"/checkpoints/"+sent.Path+"/archive", true)
		}
		_, known := stored.Load(route)
		switch {
		case route == "client/config":
			refuse(http.StatusOK, skyrlConfig)
		case route == "create_session" && sent.Tags == nil:
			refuse(http.StatusUnprocessableEntity, skyrlNoTags)
		case r.Header.Get("Content-Type") == "application/x-protobuf":
			refuse(http.StatusUnprocessableEntity, skyrlNoProto)
		case known:
			http.Redirect(w, r, "/api/v1/download", http.StatusFound)
		case route == "download":
			_, _ = w.Write(archive)
		case strings.HasSuffix(route, "/finish"), strings.HasSuffix(route, "/archive"):
			refuse(http.StatusNotFound, skyrlNoRoute)
		case route == "save_weights" && sent.Path == "twice":
			refuse(http.StatusConflict, skyrlTwice)
		case sent.Sampling.Seed > math.MaxInt32:
			refuse(http.StatusBadRequest, `{"detail":"the seed overflows an int32"}`)
		case route == "retrieve_future":
			recorded := httptest.NewRecorder()
			h.ServeHTTP(recorded, r)
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(skyrlResult(recorded.Body.Bytes()))
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// skyrlResult writes a result as SkyRL does.
func skyrlResult(data []byte) []byte {
	var result map[string]any
	if json.Unmarshal(data, &result) != nil {
		return data
	}
	if outputs, ok := result["loss_fn_outputs"].([]any); ok {
		result["metrics"], result["loss_fn_output_type"] = map[string]any{}, "scalar"
		for _, output := range outputs {
			tensors := output.(map[string]any)
			tensors["elementwise_loss"] = map[string]any{"data": []float64{0.5, 0.25}, "dtype": "float32", "shape": []int{2}}
		}
	}
	if list, ok := result["prompt_logprobs"].([]any); ok {
		result["prompt_logprobs"] = list[1:]
	}
	data, _ = json.Marshal(result)
	return data
}

// serveLikeSkyRL serves a fake that answers as SkyRL's server.
func serveLikeSkyRL(t *testing.T) string {
	t.Helper()
	archive := archived(t, "adapter_config.json", "adapter_model.safetensors")
	return serve(t, func(h http.Handler) http.Handler { return likeSkyRL(h, archive) })
}

// openLikeSkyRL registers a model at a fake that answers as SkyRL's server.
func openLikeSkyRL(t *testing.T) (*client.Backend, *art.Model) {
	t.Helper()
	return open(t, client.Options{
		BaseURL: serveLikeSkyRL(t), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(), JSON: true,
		RetryTime: time.Minute,
	})
}

// TestSkyRLFake_Works: training, publishing, samples with any seed, and the logprobs of a prompt.
func TestSkyRLFake_Works(t *testing.T) {
	b, m := openLikeSkyRL(t)
	r, err := loop.ForwardBackward(t.Context(), m, data(true), credit.CISPO, nil)
	if err != nil || r.Loss != 1.5 {
		t.Fatalf("the loss is %v, want the sum of the elements, 1.5: %v", r, err)
	}
	if _, err := loop.OptimStep(t.Context(), m, loop.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	publish(t, m, 1)
	seed := uint64(1<<63 + 5)
	if _, err := m.Chat(t.Context(), art.NewTrajectory(art.User("hi")), &art.ChatOptions{Seed: &seed}); err != nil {
		t.Error(err)
	}
	logprobs, step, err := b.Logprobs(t.Context(), m, []int32{65, 66, 67})
	if err != nil || len(logprobs) != 2 || step != 1 {
		t.Errorf("%v of step %d: %v", logprobs, step, err)
	}
}

// TestSkyRLFake_Refused: what would be wrong there, or cannot be, is an error that says what to do, at once.
func TestSkyRLFake_Refused(t *testing.T) {
	b, saved := openLikeSkyRL(t)
	began := time.Now()
	_, err := b.SaveWeights(t.Context(), saved, "twice", true)
	took := time.Since(began)
	if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), "already exists") || took > 10*time.Second {
		t.Errorf("a name twice after %v: %v", took, err)
	}
	_, m := openLikeSkyRL(t)
	negative := []loop.Datum{{Input: []int32{65, 66}, Targets: []int32{66, 67}, Weights: []float32{-1, 0.5}}}
	if _, err := loop.Forward(t.Context(), m, negative, credit.CrossEntropy, nil); err != nil {
		t.Errorf("a forward pass divides nothing: %v", err)
	}
	_, err = loop.ForwardBackward(t.Context(), m, negative, credit.CrossEntropy, nil)
	if !errors.Is(err, art.ErrUnsupported) || !strings.Contains(err.Error(), "use a policy loss") {
		t.Errorf("negative weights: %v", err)
	}
	_, proto := open(t, client.Options{
		BaseURL: serveLikeSkyRL(t), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(),
	})
	_, err = loop.ForwardBackward(t.Context(), proto, data(true), credit.CISPO, nil)
	if err == nil || !strings.Contains(err.Error(), "set Options.JSON") || strings.Contains(err.Error(), "abc") {
		t.Errorf("protobuf: %v", err)
	}
}

// TestSkyRLFake_Dropped: a training run that the engine has forgotten is made again by the next training call.
func TestSkyRLFake_Dropped(t *testing.T) {
	err := client.StatusError(http.StatusBadRequest, "Model model_53417d72 not loaded")
	if !errors.Is(err, client.ErrService) || !strings.Contains(err.Error(), "register the model again") {
		t.Error(err)
	}
}

// TestSkyRLFake_Download: saved weights without an archive are saved for sampling first, in a training run of their
// own.
func TestSkyRLFake_Download(t *testing.T) {
	b, m := openLikeSkyRL(t)
	publish(t, m, 1)
	dir := filepath.Join(t.TempDir(), "home")
	if err := b.Download(t.Context(), m, 1, dir); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !reflect.DeepEqual(got, []string{"adapter_config.json", "adapter_model.safetensors"}) {
		t.Errorf("files %v", got)
	}
}
