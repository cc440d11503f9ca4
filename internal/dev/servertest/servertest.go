// Package servertest checks that what clients of any kind sample over HTTP is recorded exactly. A [Server] listens with
// a backend that fails at random, and cuts connections at random; a client plays rollouts against it, and sends a
// request again when it fails. Every token that was sampled is then in exactly one sample, and every reply that the
// client has received is in its own rollout.
package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// Key is the key of a [Server], and Model the name of its model.
const (
	Key   = "secret"
	Model = "player"
)

// Server records rollouts of a model whose n-th reply is the text "n", sampled as the token n.
type Server struct {
	URL string

	t        *testing.T
	backend  *counting
	rollouts *server.Rollouts
	faults   *faults

	mu       sync.Mutex
	recorded map[string]*art.Trajectory // of the rollouts that were checked
}

// New returns a listening server. Faults are drawn from the seed, which it logs.
func New(t *testing.T, seed uint64) *Server {
	t.Helper()
	t.Logf("seed %d", seed)
	s := &Server{t: t, backend: &counting{dice: newDice(seed, 1)}, recorded: map[string]*art.Trajectory{}}
	m := art.NewModel(Model, nil)
	if err := m.Register(t.Context(), s.backend); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.rollouts, err = server.NewRollouts(&server.RolloutOptions{MaxTurns: 10_000}); err != nil {
		t.Fatal(err)
	}
	h, err := server.Handler(func() []*art.Model { return []*art.Model{m} }, &server.Config{Rollouts: s.rollouts},
		&art.HandlerOptions{Keys: []string{Key}})
	if err != nil {
		t.Fatal(err)
	}
	s.faults = &faults{next: h, dice: newDice(seed, 2), running: map[string]int{}}
	s.faults.ended = sync.NewCond(&s.faults.mu)
	listening := httptest.NewServer(s.faults)
	t.Cleanup(listening.Close)
	s.URL = listening.URL
	return s
}

// Rollout is one that an agent plays.
type Rollout struct {
	ID   string
	Base string // URL of the server for Anthropic's clients; those of OpenAI append /v1
	Rand *rand.Rand
}

// Agent plays a rollout of some turns, and returns the texts of the replies that it has received.
type Agent func(ctx context.Context, r *Rollout, turns int) (received []string)

// Play plays rollouts, 16 at a time, and checks their recordings.
func (s *Server) Play(rollouts, turns int, seed uint64, agent Agent) {
	s.t.Helper()
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range rollouts {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var info struct{ ID, Base string }
			s.call("POST", "/v1/rollouts", map[string]any{"model": Model}, &info)
			r := &Rollout{ID: info.ID, Base: s.URL + info.Base, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			s.check(r.ID, agent(s.t.Context(), r, turns))
		})
	}
	all.Wait()
	s.checkAll(rollouts)
}

// check waits until the server has ended the requests of a rollout, and compares its recording with the replies that
// the agent has received. Then it closes the rollout.
func (s *Server) check(id string, received []string) {
	s.faults.wait(id)
	recorded := &art.Trajectory{}
	s.call("GET", "/v1/rollouts/"+id, nil, recorded)
	times := map[string]int{}
	for _, sample := range recorded.Samples() {
		times[fmt.Sprint(sample.IDs[0])]++
	}
	for _, reply := range received {
		if times[reply] != 1 {
			s.t.Errorf("reply %s is in %d samples of its rollout", reply, times[reply])
		}
	}
	if len(recorded.Logs) != len(recorded.AdditionalHistories) {
		s.t.Errorf("%d reasons for %d additional histories", len(recorded.Logs), len(recorded.AdditionalHistories))
	}
	s.mu.Lock()
	s.recorded[id] = recorded
	s.mu.Unlock()
	s.call("POST", "/v1/rollouts/"+id+"/close", map[string]any{"reward": 1}, &struct{}{})
}

// checkAll compares the recordings of all rollouts, of which there must be so many, with what the backend has sampled.
func (s *Server) checkAll(rollouts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recorded) != rollouts {
		s.t.Errorf("%d rollouts were recorded, want %d", len(s.recorded), rollouts)
	}
	samples, branches := 0, 0
	var ids []int32
	for t := range maps.Values(s.recorded) {
		for _, sample := range t.Samples() {
			ids = append(ids, sample.IDs...)
			samples++
		}
		branches += len(t.AdditionalHistories)
	}
	slices.Sort(ids)
	sampled := s.backend.returned()
	if !slices.Equal(ids, sampled) {
		s.t.Errorf("%d tokens are in samples, and %d were sampled", len(ids), len(sampled))
	}
	s.t.Logf("%d rollouts, %d samples, %d branches, %d failures of the backend, %d connections cut", rollouts, samples,
		branches, s.backend.failures, s.faults.cuts)
}

// call sends JSON to one of the routes of rollouts, which have no faults, and decodes the answer.
func (s *Server) call(method, path string, body, into any) {
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(data))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+Key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil || response.StatusCode >= 300 {
		s.t.Errorf("%s %s: status %d, error %v: %s", method, path, response.StatusCode, err, text)
	}
}

// Settings are how many rollouts of how many turns a test of a client plays: 200 of 20 when the environment variable
// ART_ROLLOUTS is "full", else fewer.
func Settings(t *testing.T) (rollouts, turns int) {
	if os.Getenv("ART_ROLLOUTS") == "full" && !testing.Short() {
		return 200, 20
	}
	t.Log("ART_ROLLOUTS=full plays 200 rollouts of 20 turns")
	return 16, 10
}
