package tinker_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
)

// TestService_BadResults: results that cannot be used are errors that say why, and nothing goes on from them: the next
// operation of one's own loop is refused.
func TestService_BadResults(t *testing.T) {
	const logprobs = `{"data":[%],"dtype":"float32","shape":[3]}`
	one := func(values string) string { return `{"logprobs":` + strings.Replace(logprobs, "%", values, 1) + `}` }
	for name, test := range map[string]struct {
		status     int
		body, text string
	}{
		"half a body":   {http.StatusOK, `{"loss_fn_outputs":[`, "cannot be read"},
		"other number":  {http.StatusOK, `{"loss_fn_outputs":[` + one("1,1,1") + `],"metrics":{"loss:sum":1}}`, "1 data, want 2"},
		"other lengths": {http.StatusOK, `{"loss_fn_outputs":[` + one("1,1,1") + `,` + one("1,1,1") + `],"metrics":{"loss:sum":1}}`, "want 1"},
		"gone":          {http.StatusGone, `{"detail":"promise gone"}`, "register the model again"},
		"unpaid":        {http.StatusPaymentRequired, `{"detail":"no money"}`, "paid"},
		"failed":        {http.StatusOK, `{"error":"worker died","category":"server"}`, "worker died"},
	} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			address := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if armed.Load() && strings.HasSuffix(r.URL.Path, "/retrieve_future") {
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(test.status)
						_, _ = w.Write([]byte(test.body))
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			_, m := open(t, client.Options{
				BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(), JSON: true,
			})
			armed.Store(true)
			_, err := loop.ForwardBackward(t.Context(), m, data(false), credit.CrossEntropy, nil)
			if !errors.Is(err, client.ErrService) || !strings.Contains(err.Error(), test.text) ||
				strings.Contains(err.Error(), "tml-secret") {
				t.Errorf("got %v, want %q", err, test.text)
			}
			armed.Store(false)
			if _, err = loop.OptimStep(t.Context(), m, loop.DefaultAdamW()); !errors.Is(err, client.ErrService) {
				t.Errorf("the next operation: %v", err)
			}
		})
	}
}

// TestService_Refused: after an operation that the service has not begun, or that has failed and changes nothing, the
// model goes on, without a gap in the numbers of operations. After a failed update it has to be registered again.
func TestService_Refused(t *testing.T) {
	const failed = `{"error":"worker died","category":"server"}`
	forward := func(m *art.Model) error {
		_, err := loop.Forward(t.Context(), m, data(false), credit.CrossEntropy, nil)
		return err
	}
	load := func(m *art.Model) error { return loop.LoadWeights(t.Context(), m, "tinker://none/weights/none", true) }
	optim := func(m *art.Model) error {
		_, err := loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
		return err
	}
	for name, test := range map[string]struct {
		route  string
		status int
		body   string
		call   func(m *art.Model) error
		goesOn bool
	}{
		"bad request":         {"/forward", http.StatusUnprocessableEntity, `{"detail":"no"}`, forward, true},
		"no such weights":     {"/load_weights", http.StatusNotFound, `{"detail":"Checkpoint not found"}`, load, true},
		"no such model":       {"/forward", http.StatusNotFound, `{"detail":"there is no model"}`, forward, false},
		"a failed pass":       {"/retrieve_future", http.StatusOK, failed, forward, true},
		"SkyRL's failed pass": {"/retrieve_future", http.StatusBadRequest, `{"detail":"no"}`, forward, true},
		"a failed update":     {"/retrieve_future", http.StatusOK, failed, optim, false},
	} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			address := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, test.route) || !armed.Swap(false) {
						h.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(test.status)
					_, _ = w.Write([]byte(test.body))
				})
			})
			_, m := open(t, client.Options{
				BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(), JSON: true,
			})
			armed.Store(true)
			if err := test.call(m); err == nil {
				t.Fatal("no error")
			}
			began := time.Now()
			_, err := loop.ForwardBackward(t.Context(), m, data(false), credit.CrossEntropy, nil)
			if err == nil {
				_, err = loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
			}
			if took := time.Since(began); (err == nil) != test.goesOn || took > 10*time.Second {
				t.Errorf("the next operations after %v: %v", took, err)
			}
		})
	}
}
