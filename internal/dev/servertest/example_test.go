package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/dev/servertest"
)

// The test of a client, here [net/http], which asks again until it has a reply. What was sampled, recorded and received
// must then agree.
func Example() {
	_ = testClient // go test calls it, by the name TestClient
}

func testClient(t *testing.T) {
	servertest.New(t, 1).Play(8, 5, 1, play) // 8 rollouts of 5 turns
}

// play is a [servertest.Agent].
func play(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
	for len(received) < turns && ctx.Err() == nil {
		if reply, err := ask(ctx, r.Base+"/v1/chat/completions"); err == nil {
			received = append(received, reply)
		}
	}
	return received
}

// ask sends one request and returns the reply.
func ask(ctx context.Context, url string) (string, error) {
	body := strings.NewReader(`{"model": "any", "messages": [{"role": "user", "content": "Hi"}]}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+servertest.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answers %s", response.Status)
	}
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return "", err
	}
	return reply.Choices[0].Message.Content, nil
}
