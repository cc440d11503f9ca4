package backendtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

// optional returns the backend as an optional interface, and skips the test when it is not one.
func optional[T any](t *subtest, b art.Backend) T {
	t.Helper()
	v, ok := b.(T)
	if !ok {
		t.Skipf("%T has no such interface", b)
	}
	return v
}

func rowsOf(t *subtest, keeper driver.CheckpointKeeper, m *art.Model, split string, step int) []art.HistoryRow {
	t.Helper()
	rows, err := keeper.History(t.Context(), m)
	must(t, "History", err)
	return slices.DeleteFunc(rows, func(r art.HistoryRow) bool { return r.Split != split || r.Step != step })
}

// testLogger checks that a second log of the same split and step is merged into the first.
func testLogger(t *subtest, b art.Backend) {
	optional[driver.Logger](t, b)
	m := register(t, b, nil)
	groups := gather(t, m, 2)
	for i := range 2 {
		metrics := map[string]float64{fmt.Sprint("try", i): 1, "accuracy": float64(i)}
		must(t, "Log", m.Log(t.Context(), "val", groups, metrics))
	}
	must(t, "Log without groups", m.Log(t.Context(), "test", nil, map[string]float64{"accuracy": 5}))
	keeper, ok := b.(driver.CheckpointKeeper)
	if !ok {
		return // without it a log cannot be read
	}
	rows := rowsOf(t, keeper, m, "val", 0)
	if len(rows) != 1 {
		t.Fatalf("%d rows of one split and step, want 1: %+v", len(rows), rows)
	}
	metrics := rows[0].Metrics
	for key, want := range map[string]float64{"val/try0": 1, "val/try1": 1, "val/accuracy": 1, "val/reward": 0.5} {
		if got, ok := metrics[key]; !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v: the second log is merged into the first", key, got, ok, want)
		}
	}
	if rows := rowsOf(t, keeper, m, "test", 0); len(rows) != 1 || rows[0].Metrics["test/accuracy"] != 5 {
		t.Errorf("rows of the other split: %+v", rows)
	}
}

// testTrainRow checks that row k has the rewards that policy k earned and the update from k to k+1 as soon as the
// training has ended, and that a later log of the same groups adds to that row.
func testTrainRow(t *subtest, b art.Backend) {
	optional[driver.Logger](t, b)
	keeper := optional[driver.CheckpointKeeper](t, b)
	m := register(t, b, nil)
	for k := range 2 {
		groups := gather(t, m, 1)
		groups[0].Trajectories[1].Reward = float64(2 * (k + 1)) // a mean of k+1
		result, err := m.Train(t.Context(), groups, nil)
		must(t, "Train", err)
		want := map[string]float64{"train/reward": float64(k + 1), "data/groups_trainable": 1}
		wantRow(t, keeper, m, k, want)
		must(t, "Log", m.Log(t.Context(), "train", groups, result.Metrics))
		must(t, "Log", m.Log(t.Context(), "train", groups, map[string]float64{"seconds": 7}))
		want["train/seconds"] = 7
		wantRow(t, keeper, m, k, want)
		if rows := rowsOf(t, keeper, m, "train", k+1); len(rows) != 0 {
			t.Errorf("step %d has a train row, and was not trained: %+v", k+1, rows)
		}
	}
}

// wantRow checks that there is one train row of a step, and that it has these metrics.
func wantRow(t *subtest, keeper driver.CheckpointKeeper, m *art.Model, step int, want map[string]float64) {
	t.Helper()
	rows := rowsOf(t, keeper, m, "train", step)
	if len(rows) != 1 {
		t.Fatalf("%d train rows of step %d, want 1: %+v", len(rows), step, rows)
	}
	for key, value := range want {
		if got, ok := rows[0].Metrics[key]; !ok || got != value {
			t.Errorf("%s of step %d is %v (there: %v), want %v", key, step, got, ok, value)
		}
	}
}

// testCheckpointKeeper checks that each step leaves a checkpoint, and which ones are deleted.
func testCheckpointKeeper(t *subtest, b art.Backend) {
	keeper := optional[driver.CheckpointKeeper](t, b)
	m := register(t, b, nil)
	_, logs := b.(driver.Logger)
	for step := 1; step <= 3; step++ {
		_, err := m.Train(t.Context(), gather(t, m, 1), nil)
		must(t, "Train", err)
		if logs {
			metrics := map[string]float64{"reward": float64(step % 3)} // best at step 2
			must(t, "Log", m.Log(t.Context(), "val", nil, metrics))
		}
	}
	wantCheckpoints(t, keeper, m, 1, 2, 3)
	if logs {
		must(t, "DeleteCheckpoints", m.DeleteCheckpoints(t.Context(), "val/reward"))
		wantCheckpoints(t, keeper, m, 2, 3)
	}
	must(t, "DeleteCheckpoints", keeper.DeleteCheckpoints(t.Context(), m, []int{3}))
	wantCheckpoints(t, keeper, m, 3)
	wantServed(t, m, 3)
}

// wantCheckpoints checks the stored steps above 0; a backend may also store step 0.
func wantCheckpoints(t *subtest, keeper driver.CheckpointKeeper, m *art.Model, want ...int) {
	t.Helper()
	got, err := keeper.Checkpoints(t.Context(), m)
	must(t, "Checkpoints", err)
	got = slices.DeleteFunc(got, func(step int) bool { return step == 0 })
	if !slices.Equal(got, want) {
		t.Errorf("checkpoints are %v, want %v", got, want)
	}
}

func lessons() []*art.Trajectory {
	return []*art.Trajectory{
		art.NewTrajectory(append(ask("What is the colour of the sky?").Messages, art.Assistant("Blue"))...),
		art.NewTrajectory(append(ask("What is the colour of grass?").Messages, art.Assistant("Green"))...),
	}
}

// wantTrained checks that a training has made step 1, and that it is served.
func wantTrained(t *subtest, m *art.Model, result *art.TrainResult, err error) {
	t.Helper()
	must(t, "training", err)
	if result.Step != 1 {
		t.Errorf("step is %d, want 1", result.Step)
	}
	wantServed(t, m, 1)
}

// testSFTTrainer and testDPOTrainer check that a step is made, and that what cannot be trained on makes none.
func testSFTTrainer(t *subtest, b art.Backend) {
	optional[driver.SFTTrainer](t, b)
	m := register(t, b, nil)
	result, err := m.TrainSFT(t.Context(), lessons(), nil)
	wantTrained(t, m, result, err)
	_, err = m.TrainSFT(t.Context(), lessons(), &art.SFTConfig{BatchSize: -1})
	wantError(t, "TrainSFT with a bad config", err, art.ErrInvalid)
	wantStep(t, m, 1)
}

// preferences are pairs of answers, of which the first is preferred.
func preferences() []art.Preference {
	prompt := ask("What is the colour of the sky?").Messages
	return []art.Preference{{
		Chosen:   art.NewTrajectory(prompt[0], art.Assistant("Blue")),
		Rejected: art.NewTrajectory(prompt[0], art.Assistant("Green")),
	}}
}

func testDPOTrainer(t *subtest, b art.Backend) {
	optional[driver.DPOTrainer](t, b)
	m := register(t, b, nil)
	result, err := m.TrainDPO(t.Context(), preferences(), nil)
	wantTrained(t, m, result, err)
	_, err = m.TrainDPO(t.Context(), nil, nil)
	wantError(t, "TrainDPO without pairs", err, art.ErrInvalid)
	wantStep(t, m, 1)
}

// testHTTPServer checks that an OpenAI client in process gets the same reply as a Go call, and is recorded.
func testHTTPServer(t *subtest, b art.Backend) {
	server := optional[driver.HTTPServer](t, b)
	m := register(t, b, nil)
	want := complete(t, m, "Hello?", seeded(3))
	body, err := json.Marshal(map[string]any{
		"model": m.Name(), "messages": ask("Hello?").Messages, "max_tokens": maxTokens, "seed": 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	var reply string
	recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
		status, text, err := post(ctx, m.HTTPClient(), body)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, text)
		}
		reply = text
		return err
	})
	must(t, "POST", err)
	var response struct {
		Choices []struct {
			Message art.Message `json:"message"`
			Finish  string      `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(reply), &response); err != nil || len(response.Choices) != 1 {
		t.Fatalf("response %s: %d choices, error %v", reply, len(response.Choices), err)
	}
	if got := response.Choices[0]; got.Message.Role != art.RoleAssistant || got.Message.Content != want.Message.Content ||
		got.Finish != want.Finish {
		t.Errorf("over HTTP %q (%s), in Go %q (%s)", got.Message.Content, got.Finish, want.Message.Content, want.Finish)
	}
	samples := recorded.Samples()
	if len(samples) != 1 || !slices.Equal(samples[0].IDs, sampleOf(t, want).IDs) {
		t.Errorf("recorded %d samples, want the one of the reply", len(samples))
	}
	if status, text, err := post(t.Context(), m.HTTPClient(), []byte(`{"messages": 5}`)); err != nil ||
		status != http.StatusBadRequest {
		t.Errorf("a bad request got status %d, %s, error %v; want 400", status, text, err)
	}
	handler, err := server.Handler(nil)
	must(t, "Handler", err)
	models := httptest.NewRecorder()
	handler.ServeHTTP(models, httptest.NewRequest(http.MethodGet, "http://localhost/v1/models", nil))
	if models.Code != http.StatusOK || !strings.Contains(models.Body.String(), m.Name()) {
		t.Errorf("GET /v1/models: status %d, %s; want one that names %q", models.Code, models.Body, m.Name())
	}
}

// post sends a chat completion request to a host that does not exist.
func post(ctx context.Context, client *http.Client, body []byte) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://art.invalid/v1/chat/completions",
		bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
