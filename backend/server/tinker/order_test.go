package tinker

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// program is what a client does: ten steps of two forward-backward passes.
func program(model string) (bodies []any, paths []string) {
	for len(bodies) < 30 {
		seq := len(bodies) + 1
		bodies = append(bodies, backward(model, seq, int64(seq)), backward(model, seq+1, 3), step(model, seq+2))
		paths = append(paths, "forward_backward", "forward_backward", "optim_step")
	}
	return bodies, paths
}

// undisturbed is the weight after a program, sent in order.
func undisturbed(t *testing.T) float64 {
	t.Helper()
	_, h := newFake(t, nil)
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	bodies, paths := program(model)
	for i := range bodies {
		c.result(c.ok(paths[i], bodies[i]).RequestID)
	}
	return c.weight(model, len(bodies)+1)
}

// TestOrder_ReorderedAndRepeated: requests are executed in the order of their seq_id, each once, in whatever order and
// however often they arrive.
func TestOrder_ReorderedAndRepeated(t *testing.T) {
	want := undisturbed(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	shuffle := rand.New(rand.NewPCG(seed, 0))
	_, h := newFake(t, nil)
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	bodies, paths := program(model)
	order := append(shuffle.Perm(len(bodies)), shuffle.Perm(len(bodies))...)
	ids := map[int]string{}
	for _, i := range order {
		id := c.ok(paths[i], bodies[i]).RequestID
		if ids[i] != "" && ids[i] != id {
			t.Fatalf("request %d has the futures %s and %s", i, ids[i], id)
		}
		ids[i] = id
	}
	for _, id := range ids {
		if first, again := c.result(id), c.result(id); string(first) != string(again) {
			t.Errorf("two reads of %s: %s, %s", id, first, again)
		}
	}
	if got := c.weight(model, len(bodies)+1); got != want {
		t.Errorf("weight %v, want %v", got, want)
	}
}

// TestOrder_SeqIDReused: another request with a seq_id that was used is an error.
func TestOrder_SeqIDReused(t *testing.T) {
	_, h := newFake(t, nil)
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	c.result(c.ok("forward_backward", backward(model, 1, 1)).RequestID)
	status, body := c.call(http.MethodPost, "forward_backward", backward(model, 1, 2))
	if status != http.StatusBadRequest {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestOrder_Gap: what waits for a request that never arrives fails, and what was lost is said.
func TestOrder_Gap(t *testing.T) {
	_, h := newFake(t, &Options{
		Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, GapTimeout: 50 * time.Millisecond, noSync: true,
	})
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	var out tinkerwire.Result
	data := c.result(c.ok("optim_step", step(model, 2)).RequestID)
	err := json.Unmarshal(data, &out)
	if err != nil || out.Category != "user" || !strings.Contains(out.Error, "seq_id 1") {
		t.Fatalf("%v: %s", err, data)
	}
	c.result(c.ok("forward_backward", backward(model, 1, 1)).RequestID)
	c.await("optim_step", step(model, 3)) // after those that have failed
}

// TestRestart: a server that is stopped between any two requests goes on as if it had not been.
func TestRestart(t *testing.T) {
	want := undisturbed(t)
	for stop := range 31 {
		backend := &arttest.Backend{}
		opts := &Options{Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true}
		open := func() (*Server, *caller) {
			s, err := New(backend, opts)
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
			if err != nil {
				t.Fatal(err)
			}
			return s, &caller{t, h, "tml-secret"}
		}
		s, c := open()
		model := c.model()
		bodies, paths := program(model)
		results := map[string]string{}
		for i := range bodies {
			if i == stop {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s, c = open()
			}
			id := c.ok(paths[i], bodies[i]).RequestID
			if i%3 == stop%3 { // the others wait
				results[id] = string(c.result(id))
			}
		}
		for id, want := range results {
			if got := string(c.result(id)); got != want {
				t.Errorf("stopped at %d: %s is %s, was %s", stop, id, got, want)
			}
		}
		if got := c.weight(model, len(bodies)+1); got != want {
			t.Errorf("stopped at %d: weight %v, want %v", stop, got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
