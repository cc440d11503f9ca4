package openaigo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	client "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// counting is a backend whose n-th reply is the text "n", sampled as the token n. It calls a tool in every third one,
// and fails at random.
type counting struct {
	art.Backend // the methods that are not called stay nil
	calls       atomic.Int32
}

func (b *counting) Register(context.Context, *art.Model) (int, error) { return 3, nil }

func (b *counting) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	if rand.IntN(20) == 0 {
		return nil, errors.New("out of memory") // status 500: the client sends the request again
	}
	select {
	case <-time.After(time.Duration(rand.IntN(1000)) * time.Microsecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n := b.calls.Add(1)
	reply := art.Assistant(fmt.Sprint(n))
	if n%3 == 0 && len(req.Tools) > 0 {
		reply.ToolCalls = []art.ToolCall{{ID: fmt.Sprint("call-", n), Name: "look", Arguments: `{"at": 1}`}}
	}
	reply.Sample = &art.Sample{
		PromptIDs: []int32{7}, IDs: []int32{n}, Logprobs: []float32{-float32(n) / 7}, Settings: req.Settings, Step: 3,
		Finish: finish(reply),
	}
	return &art.ChatResponse{
		ID: fmt.Sprint("chatcmpl-", n), Model: m.Name() + "@3", Message: reply, Finish: finish(reply),
	}, nil
}

// recordingServer is a listening server that records rollouts.
type recordingServer struct {
	t        *testing.T
	url      string
	rollouts *server.Rollouts
}

func newRecordingServer(t *testing.T) *recordingServer {
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), &counting{}); err != nil {
		t.Fatal(err)
	}
	s := &recordingServer{t: t}
	var err error
	if s.rollouts, err = server.NewRollouts(nil); err != nil {
		t.Fatal(err)
	}
	h, err := server.Handler(func() []*art.Model { return []*art.Model{m} }, &server.Config{Rollouts: s.rollouts},
		&art.HandlerOptions{Keys: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(h)
	t.Cleanup(listening.Close)
	s.url = listening.URL
	return s
}

// call sends JSON to one of the routes of rollouts and decodes the answer.
func (s *recordingServer) call(method, path string, body any, into any) {
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer secret")
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

// agent plays one rollout with OpenAI's client, and returns the replies that it received.
func (s *recordingServer) agent(ctx context.Context, base string, rng *rand.Rand) (received []string) {
	c := client.NewClient(option.WithBaseURL(s.url+base+"/v1"), option.WithAPIKey("secret"), option.WithMaxRetries(10),
		option.WithMiddleware(withoutWaiting))
	p := params()
	p.Tools = []client.ChatCompletionToolUnionParam{look}
	for turn := range 20 {
		reply := s.turn(ctx, c, p, rng)
		received = append(received, reply.Content)
		p.Messages = append(p.Messages, reply.ToParam())
		for _, call := range reply.ToolCalls {
			p.Messages = append(p.Messages, client.ToolMessage("a wall", call.ID))
		}
		p.Messages = append(p.Messages, client.UserMessage(fmt.Sprint("turn ", turn)))
	}
	return received
}

// withoutWaiting lets the client send a failed request again at once.
func withoutWaiting(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err == nil && response.StatusCode >= 500 {
		response.Header.Set("Retry-After-Ms", "1")
	}
	return response, err
}

// turn asks for a reply, streamed or not. It gives up at random, and asks again.
func (s *recordingServer) turn(
	ctx context.Context, c client.Client, p client.ChatCompletionNewParams, rng *rand.Rand,
) client.ChatCompletionMessage {
	for ctx.Err() == nil {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if rng.IntN(10) == 0 {
			limited, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(1500))*time.Microsecond)
		}
		reply, err := ask(limited, c, p, rng.IntN(2) == 0)
		cancel()
		if err == nil {
			return reply
		}
		if limited.Err() == nil {
			s.t.Error(err)
			break
		}
	}
	return client.ChatCompletionMessage{}
}

// ask asks for one reply.
func ask(
	ctx context.Context, c client.Client, p client.ChatCompletionNewParams, stream bool,
) (client.ChatCompletionMessage, error) {
	if !stream {
		got, err := c.Chat.Completions.New(ctx, p)
		if err != nil {
			return client.ChatCompletionMessage{}, err
		}
		return got.Choices[0].Message, nil
	}
	var all client.ChatCompletionAccumulator
	events := c.Chat.Completions.NewStreaming(ctx, p)
	for events.Next() {
		all.AddChunk(events.Current())
	}
	if err := events.Err(); err != nil {
		return client.ChatCompletionMessage{}, err
	}
	if len(all.Choices) == 0 {
		return client.ChatCompletionMessage{}, fmt.Errorf("a stream without a choice: %w", ctx.Err())
	}
	return all.Choices[0].Message, nil
}

// TestRollouts_EveryReplyInOneSample records 200 rollouts of 20 turns over a socket, streamed and not, with requests
// that fail, are cancelled and sent again. What a client has received is in exactly one sample, of its own rollout.
func TestRollouts_EveryReplyInOneSample(t *testing.T) {
	s := newRecordingServer(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	slots, known := make(chan struct{}, 16), &sync.Map{}
	var all sync.WaitGroup
	for i := range 200 {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var info struct{ ID, Base string }
			s.call("POST", "/v1/rollouts", map[string]any{"model": "player", "group": fmt.Sprint(i / 8), "group_size": 8}, &info)
			received := s.agent(t.Context(), info.Base, rand.New(rand.NewPCG(seed, uint64(i))))
			var recorded art.Trajectory
			s.call("GET", "/v1/rollouts/"+info.ID, nil, &recorded)
			checkRecording(t, &recorded, received, known)
			s.call("POST", "/v1/rollouts/"+info.ID+"/close", map[string]any{"reward": i % 8}, &struct{}{})
		})
	}
	all.Wait()
	for range 25 {
		g, err := s.rollouts.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Trajectories) != 8 {
			t.Errorf("group %v has %d trajectories", g.Metadata["group"], len(g.Trajectories))
		}
	}
}

// checkRecording compares a recording with the replies that its agent has received. known has the ids of all samples.
func checkRecording(t *testing.T, recorded *art.Trajectory, received []string, known *sync.Map) {
	times := map[string]int{}
	for _, sample := range recorded.Samples() {
		times[fmt.Sprint(sample.IDs[0])]++
		if _, twice := known.LoadOrStore(sample.IDs[0], true); twice {
			t.Errorf("token %d is in two samples", sample.IDs[0])
		}
	}
	for _, reply := range received {
		if times[reply] != 1 {
			t.Errorf("reply %s is in %d samples", reply, times[reply])
		}
	}
}
