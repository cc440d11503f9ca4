package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// flaky is a backend that fails now and then, before or after it has sampled, and takes its time. It remembers what it
// has returned.
type flaky struct {
	sampling
	mu       sync.Mutex
	rng      *rand.Rand
	returned []int32 // the first id of each completion
}

// chance is true with probability p.
func (b *flaky) chance(p float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rng.Float64() < p
}

func (b *flaky) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	if b.chance(0.05) {
		return nil, errors.New("out of memory")
	}
	if b.chance(0.3) {
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
	}
	if b.chance(0.5) && ctx.Err() != nil { // else it has not noticed that the client has gone
		return nil, ctx.Err()
	}
	reply, err := b.sampling.Complete(ctx, m, req)
	if err == nil {
		b.mu.Lock()
		b.returned = append(b.returned, reply.Message.Sample.IDs[0])
		b.mu.Unlock()
	}
	return reply, err
}

// flakyAgent is a client that plays one rollout. It gives up requests at random and sends them again, and sends some
// twice at the same time.
type flakyAgent struct {
	s        *recording
	rng      *rand.Rand
	requests sync.WaitGroup // that the server still answers
	received []string       // replies
}

// send sends a request, and gives up at random. ok is false when there is no reply.
func (a *flakyAgent) send(base string, talk []string) (reply string, ok bool) {
	ctx, giveUp := context.WithCancel(a.s.t.Context())
	w, done := httptest.NewRecorder(), make(chan struct{})
	a.requests.Go(func() {
		defer close(done)
		a.s.handler.ServeHTTP(w, request(ctx, "k1", "POST", base+"/v1/chat/completions", conversation(talk...)))
	})
	if a.rng.Float64() < 0.1 {
		time.Sleep(time.Duration(a.rng.IntN(150)) * time.Microsecond)
		giveUp()
		return "", false
	}
	<-done
	giveUp()
	var body struct {
		Choices []struct{ Message art.Message }
	}
	if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &body) != nil {
		return "", false
	}
	return body.Choices[0].Message.Content, true
}

// turn sends a request until there is a reply.
func (a *flakyAgent) turn(base string, talk []string) string {
	for {
		if reply, ok := a.send(base, talk); ok {
			a.received = append(a.received, reply)
			return reply
		}
	}
}

// play plays a rollout of 20 turns, closes it, and returns what was recorded.
func (a *flakyAgent) play(group int) *art.Trajectory {
	id, base := a.s.open(fmt.Sprintf(`, "group": "g%d", "group_size": 8`, group))
	talk := []string{"go"}
	for turn := range 20 {
		if a.rng.Float64() < 0.1 { // a sub-agent with a turn of its own, at the same time
			body := conversation(append(slices.Clone(talk), fmt.Sprint("sub ", turn), "?")...)
			a.requests.Go(func() { a.s.do("k1", "POST", base+"/v1/chat/completions", body) })
		}
		talk = append(talk, a.turn(base, talk), fmt.Sprint("turn ", turn))
	}
	a.requests.Wait()
	var t art.Trajectory
	a.s.must(http.StatusOK, "GET", "/v1/rollouts/"+id, "", &t)
	if a.rng.Float64() < 0.1 {
		a.s.close(id, `"failure": "lost"`)
	} else {
		a.s.close(id, fmt.Sprintf(`"reward": %v`, a.rng.Float64()))
	}
	return &t
}

// check compares a recording with what the agent has received.
func (a *flakyAgent) check(t *art.Trajectory) {
	inSamples := map[string]int{}
	for _, s := range t.Samples() {
		inSamples[fmt.Sprint(s.IDs[0])]++
	}
	for _, reply := range a.received {
		if inSamples[reply] != 1 {
			a.s.t.Errorf("reply %s is in %d samples", reply, inSamples[reply])
		}
	}
	if got := len(t.Logs); got != len(t.AdditionalHistories) {
		a.s.t.Errorf("%d reasons for %d additional histories", got, len(t.AdditionalHistories))
	}
}

// TestRollouts_EveryTokenInOneSample records 200 rollouts of 20 turns, with clients that give up and retry, sub-agents
// and a backend that fails. Each completion is in exactly one sample, of the rollout that asked for it.
func TestRollouts_EveryTokenInOneSample(t *testing.T) {
	groups, size := 25, 8
	if testing.Short() {
		groups = 5
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := &flaky{rng: rand.New(rand.NewPCG(seed, 0))}
	s := newRecording(t, b, nil)
	recorded := make([]*art.Trajectory, groups*size)
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range recorded {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			a := &flakyAgent{s: s, rng: rand.New(rand.NewPCG(seed, uint64(i)+1))}
			recorded[i] = a.play(i / size)
			a.check(recorded[i])
		})
	}
	all.Wait()
	wantEqual(t, "ids in samples", sortedIDs(recorded), slices.Sorted(slices.Values(b.returned)))
	total := 0
	for range groups {
		g := s.next()
		total += len(g.Trajectories) + len(g.Failures)
	}
	wantEqual(t, "rollouts in groups", total, len(recorded))
	wantEqual(t, "held", s.rollouts.held, 0)
	wantEqual(t, "bytes", s.rollouts.bytes, int64(0))
}

// sortedIDs returns the first id of each sample.
func sortedIDs(trajectories []*art.Trajectory) (ids []int32) {
	for _, t := range trajectories {
		for _, sample := range t.Samples() {
			ids = append(ids, sample.IDs[0])
		}
	}
	slices.Sort(ids)
	return ids
}
