package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// twoTurns plays a short conversation and rewards it by its text.
func twoTurns(m *art.Model) func(ctx context.Context, question string) (*art.Trajectory, error) {
	return func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.System("Reply with a number."), art.User(question))
		for turn := range 2 {
			reply, err := m.Chat(ctx, t, nil)
			if err != nil {
				return nil, err
			}
			t.Reward += float64(turn+1) * float64(len(reply.Content)+strings.Count(reply.Content, "1"))
			t.Add(art.User("and now?"))
		}
		return t, nil
	}
}

// TestTrain_GapIsZero: the trainer computes the logprobs of the sampler, bit for bit, whatever the rank, the
// temperature and the step.
func TestTrain_GapIsZero(t *testing.T) {
	b := open(t, t.TempDir())
	for _, rank := range []int{1, 8, 32, 40} {
		m := art.NewModel(fmt.Sprintf("rank-%d", rank), &art.ModelOptions{
			LoRA: art.LoRA{Rank: rank}, Chat: art.ChatOptions{MaxTokens: new(7), Temperature: new(1.3), TopP: new(0.95)},
		})
		require.NoError(t, m.Register(t.Context(), b))
		for range 3 {
			groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, twoTurns(m),
				&art.GatherOptions{GroupSize: 5, Concurrency: 4})
			require.NoError(t, err)
			result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3})
			require.NoError(t, err)
			require.Positive(t, result.Metrics["data/tokens_trained"])
			require.Positive(t, result.Metrics["loss/grad_norm"])
			require.Zero(t, result.Metrics["train/logprob_gap_max"], "rank %d, step %d", rank, result.Step)
		}
	}
}

// TestTrain_Progress: the metrics reported after the last optimizer step are those of the result.
func TestTrain_Progress(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	var last art.TrainProgress
	check := func(result *art.TrainResult, err error, loss string) {
		require.NoError(t, err)
		require.Equal(t, 6, last.Total)
		require.Equal(t, 6, last.Done)
		require.Contains(t, last.Metrics, loss)
		for name, value := range last.Metrics {
			require.Equal(t, result.Metrics[name], value, name)
		}
	}
	notify := func(p art.TrainProgress) { last = p }
	result, err := m.Train(t.Context(), groups,
		&art.TrainConfig{LearningRate: 1e-3, MiniBatches: 3, Epochs: 2, Progress: notify})
	check(result, err, "loss/policy")
	result, err = m.TrainSFT(t.Context(), groups[0].Trajectories,
		&art.SFTConfig{BatchSize: 2, Epochs: 2, Progress: notify})
	check(result, err, "loss/sft")
}

// TestTrainSFT_Counts: a trajectory with several histories is one, and each history without an answer is skipped.
func TestTrainSFT_Counts(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	two := art.NewTrajectory(art.User("7+5="), art.Assistant("12"))
	two.AdditionalHistories = []art.History{{Messages: []art.Message{art.User("1+1="), art.Assistant("2")}}}
	partial := art.NewTrajectory(art.User("7+5="), art.Assistant("12"))
	partial.AdditionalHistories = []art.History{{Messages: []art.Message{art.User("1+1=")}}}
	result, err := m.TrainSFT(t.Context(), []*art.Trajectory{two, partial, art.NewTrajectory(art.User("3+4="))}, nil)
	require.NoError(t, err)
	require.Equal(t, 2.0, result.Metrics["data/trajectories_trained"])
	require.Equal(t, 2.0, result.Metrics["data/skipped_no_samples"])
	require.Len(t, result.Skipped, 2)
	require.Equal(t, []int{1, 2}, []int{result.Skipped[0].Trajectory, result.Skipped[1].Trajectory})
	require.Equal(t, 1.0, result.Metrics["data/updates"])
}

// TestTrainSFT_BatchSize: an epoch has as many updates as batches, and a size above all is one batch.
func TestTrainSFT_BatchSize(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	var list []*art.Trajectory
	for range 5 {
		list = append(list, art.NewTrajectory(art.User("7+5="), art.Assistant("12")))
	}
	for size, updates := range map[int]float64{1: 5, 2: 3, 4: 2, 5: 1, 6: 1, math.MaxInt: 1} {
		result, err := m.TrainSFT(t.Context(), list, &art.SFTConfig{BatchSize: size})
		require.NoError(t, err, "size %d", size)
		require.Equal(t, updates, result.Metrics["data/updates"], "size %d", size)
	}
}

// TestTrain_BFloat16: with bfloat16 matrices too, and another adapter comes out.
func TestTrain_BFloat16(t *testing.T) {
	adapters := map[string]string{}
	for _, weights := range []string{"float32", "bfloat16"} {
		b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Weights: weights})
		require.NoError(t, err)
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
		require.NoError(t, err)
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
		require.NoError(t, err)
		require.Zero(t, result.Metrics["train/logprob_gap_max"])
		adapters[weights] = adapterBytes(t, b, m, 1)
		require.NoError(t, b.Close())
	}
	require.NotEqual(t, adapters["float32"], adapters["bfloat16"])
}

// TestTrain_FromStorage: a step that was stored trains again to the same adapter, bit for bit.
func TestTrain_FromStorage(t *testing.T) {
	b, dir := open(t, t.TempDir()), t.TempDir()
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	stored, err := b.Trajectories(t.Context(), m, "train", 0)
	require.NoError(t, err)
	require.Equal(t, groups, stored)

	again, other := art.NewModel("m", nil), open(t, dir)
	require.NoError(t, again.Register(t.Context(), other))
	_, err = again.Train(t.Context(), stored, &art.TrainConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Equal(t, adapterBytes(t, b, m, 1), adapterBytes(t, other, again, 1))
}

func adapterBytes(t *testing.T, b *Backend, m *art.Model, step int) string {
	dir, err := b.Dir(m)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "checkpoints", fmt.Sprintf("%04d", step), "adapter_model.safetensors"))
	require.NoError(t, err)
	return string(data)
}

func TestRegister_Errors(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	require.NoError(t, art.NewModel("m", nil).Register(t.Context(), b))
	for name, c := range map[string]struct {
		model *art.Model
		want  error
	}{
		"no such base":   {art.NewModel("x", &art.ModelOptions{Base: filepath.Join(dir, "nowhere")}), art.ErrBaseModel},
		"not a model":    {art.NewModel("x", &art.ModelOptions{Base: dir}), art.ErrBaseModel},
		"same run":       {art.NewModel("m", nil), art.ErrLocked},
		"unknown target": {art.NewModel("x", &art.ModelOptions{LoRA: art.LoRA{Targets: []string{"nothing"}}}), art.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.model.Register(t.Context(), b)
			require.ErrorIs(t, err, c.want)
			var e *art.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Hint, err)
		})
	}
	require.ErrorIs(t, art.NewModel("m", nil).Register(t.Context(), open(t, dir)), art.ErrLocked, "a second backend")
}

// TestRegister_Changed: a run does not continue with other options than it began with.
func TestRegister_Changed(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	require.NoError(t, art.NewModel("m", &art.ModelOptions{Seed: 1}).Register(t.Context(), b))
	require.NoError(t, b.Close())
	err := art.NewModel("m", &art.ModelOptions{Seed: 2, LoRA: art.LoRA{Rank: 4}}).Register(t.Context(), open(t, dir))
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err,
		"made with other options: LoRA.Rank was 8 and is now 4; LoRA.Alpha was 16 and is now 8; "+
			"Seed was 1 and is now 2")
	require.NoError(t, art.NewModel("m", &art.ModelOptions{Seed: 1}).Register(t.Context(), open(t, dir)))
}

// TestRegister_Corrected: what the first Register of a run refused is not held against the second.
func TestRegister_Corrected(t *testing.T) {
	b := open(t, t.TempDir())
	bad := &art.ModelOptions{LoRA: art.LoRA{Targets: []string{"nothing"}}}
	require.ErrorIs(t, art.NewModel("m", bad).Register(t.Context(), b), art.ErrInvalid)
	require.NoError(t, art.NewModel("m", nil).Register(t.Context(), b))
}

// TestRegister_Damaged: a checkpoint that was truncated or changed is an error that names it, and stays.
func TestRegister_Damaged(t *testing.T) {
	for _, file := range []string{"adapter_model.safetensors", "optimizer.safetensors", "trainer.json",
		"adapter_config.json"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, dir)
			require.NoError(t, art.NewModel("m", nil).Register(t.Context(), b))
			require.NoError(t, b.Close())
			path := filepath.Join(dir, "default", "models", "m", "checkpoints", "0000", file)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, data[:len(data)-1], 0o644))
			err = art.NewModel("m", nil).Register(t.Context(), open(t, dir))
			require.ErrorIs(t, err, art.ErrCorrupt)
			require.ErrorContains(t, err, "0000")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, data[:len(data)-1], after)
		})
	}
}

func TestComplete_TooLong(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	_, err := m.Chat(t.Context(), art.NewTrajectory(art.User(strings.Repeat("word ", 400))), nil)
	require.ErrorIs(t, err, art.ErrContextLength)
}

// TestComplete_Stop: a stop text is not part of the message; its tokens are part of the sample.
func TestComplete_Stop(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	ask := func(stop ...string) *art.Message {
		reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("7+5=")),
			&art.ChatOptions{Seed: new(uint64(5)), MaxTokens: new(30), Stop: stop})
		require.NoError(t, err)
		return reply
	}
	whole := ask()
	require.Greater(t, len(whole.Content), 0)
	stop := whole.Content[len(whole.Content)/2 : len(whole.Content)/2+1]
	cut := ask(stop)
	before, _, _ := strings.Cut(whole.Content, stop)
	require.Equal(t, before, cut.Content)
	require.Equal(t, art.FinishStop, cut.Sample.Finish)
	require.Equal(t, whole.Sample.IDs[:len(cut.Sample.IDs)], cut.Sample.IDs)
}

// TestComplete_TemplateArgs: the chat template sees the variables of a call, in Go and over HTTP.
func TestComplete_TemplateArgs(t *testing.T) {
	dir := t.TempDir()
	for name, content := range tinyFiles(t) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	source := "{% for m in messages %}{{ m.content }}{% endfor %}{{ '/no_think' if enable_thinking is false }}"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(source), 0o600))
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Base: dir, Chat: art.ChatOptions{MaxTokens: new(1)}})
	require.NoError(t, m.Register(t.Context(), b))
	tok, err := tokenizer.Load(dir)
	require.NoError(t, err)

	question := &art.History{Messages: []art.Message{art.User("7+5=")}}
	args := json.RawMessage(`{"enable_thinking": false}`)
	direct, err := m.Complete(t.Context(), question, &art.ChatOptions{TemplateArgs: args})
	require.NoError(t, err)
	require.Equal(t, "7+5=/no_think", tok.Decode(direct.Message.Sample.PromptIDs, false))
	without, err := m.Complete(t.Context(), question, nil)
	require.NoError(t, err)
	require.Equal(t, "7+5=", tok.Decode(without.Message.Sample.PromptIDs, false))
	_, err = m.Complete(t.Context(), question, &art.ChatOptions{TemplateArgs: json.RawMessage(`{"messages": []}`)})
	require.ErrorIs(t, err, art.ErrInvalid)

	served, err := art.Record(t.Context(), func(ctx context.Context) error {
		body := `{"model": "m", "messages": [{"role": "user", "content": "7+5="}], ` +
			`"chat_template_kwargs": {"enable_thinking": false}}`
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://m/v1/chat/completions",
			strings.NewReader(body))
		require.NoError(t, err)
		response, err := m.HTTPClient().Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, direct.Message.Sample.PromptIDs, served.Messages[len(served.Messages)-1].Sample.PromptIDs)
}

// TestHandler serves over a socket.
func TestHandler(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	_, err := b.Handler(&art.HandlerOptions{Keys: []string{""}})
	require.ErrorIs(t, err, art.ErrInvalid)
	handler, err := b.Handler(nil)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	foreign := httptest.NewRecorder()
	handler.ServeHTTP(foreign, httptest.NewRequest(http.MethodGet, "http://evil.example/v1/models", nil))
	require.Equal(t, http.StatusForbidden, foreign.Code)
	body := `{"model":"m","messages":[{"role":"user","content":"7+5="}],"max_tokens":4,"logprobs":true,` +
		`"return_token_ids":true,"seed":3}`
	response, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(data))
	var got struct {
		Model   string `json:"model"`
		Choices []struct {
			Message  art.Message `json:"message"`
			TokenIDs []int32     `json:"token_ids"`
		} `json:"choices"`
	}
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, "m@0", got.Model)
	direct, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("7+5=")}},
		&art.ChatOptions{MaxTokens: new(4), Seed: new(uint64(3))})
	require.NoError(t, err)
	require.Equal(t, direct.Message.Sample.IDs, got.Choices[0].TokenIDs)
	require.Equal(t, direct.Message.Content, got.Choices[0].Message.Content)
}
