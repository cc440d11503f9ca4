package tinker

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// caller calls a handler with a key.
type caller struct {
	t   *testing.T
	h   http.Handler
	key string
}

// call sends a request and returns the status and the body.
func (c *caller) call(method, path string, body any) (int, []byte) {
	c.t.Helper()
	data, media := []byte(nil), tinkerwire.JSONType
	switch b := body.(type) {
	case nil:
	case []byte:
		data = b
	case *tinkerwire.ForwardRequest:
		data, media = b.Proto(), tinkerwire.ProtoType
	default:
		var err error
		if data, err = json.Marshal(body); err != nil {
			c.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, "http://localhost/api/v1/"+path, bytes.NewReader(data))
	r.Header.Set("Content-Type", media)
	r.Header.Set("X-API-Key", c.key)
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// ok sends a request that must succeed, and decodes the answer.
func (c *caller) ok(path string, body any) (out tinkerwire.Result) {
	c.t.Helper()
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	status, data := c.call(method, path, body)
	if status != http.StatusOK || json.Unmarshal(data, &out) != nil {
		c.t.Fatalf("%s: status %d: %s", path, status, data)
	}
	return out
}

// result polls until there is a result.
func (c *caller) result(id string) []byte {
	c.t.Helper()
	for {
		status, data := c.call(http.MethodPost, "retrieve_future", tinkerwire.Request{RequestID: id})
		switch status {
		case http.StatusOK:
			return data
		case http.StatusRequestTimeout:
		default:
			c.t.Fatalf("future %s: status %d: %s", id, status, data)
		}
	}
}

// await submits an operation and returns its result, which must not be an error.
func (c *caller) await(path string, body any) (out tinkerwire.Result) {
	c.t.Helper()
	data := c.result(c.ok(path, body).RequestID)
	if err := json.Unmarshal(data, &out); err != nil || out.Error != "" {
		c.t.Fatalf("%s: %v: %s", path, err, data)
	}
	return out
}

// model creates a session and a model.
func (c *caller) model() string {
	c.t.Helper()
	session := c.ok("create_session", tinkerwire.Request{SDKVersion: "test"}).SessionID
	return c.await("create_model", tinkerwire.Request{
		SessionID: session, ModelSeqID: new(0), BaseModel: "org/fake", LoRA: &tinkerwire.LoRAConfig{Rank: 4},
	}).ModelID
}

// backward is a request with one token of target.
func backward(model string, seq int, target int64) *tinkerwire.ForwardRequest {
	return &tinkerwire.ForwardRequest{ModelID: model, SeqID: seq, Loss: "cross_entropy", Data: []tinkerwire.Datum{{
		Input:  tinkerwire.NewInput([]int32{1}),
		Inputs: map[string]tinkerwire.Tensor{"target_tokens": tinkerwire.NewInts([]int64{target})},
	}}}
}

// step is an optimizer step with plain gradients.
func step(model string, seq int) tinkerwire.Request {
	return tinkerwire.Request{ModelID: model, SeqID: seq, Adam: &tinkerwire.Adam{LearningRate: new(0.5), Beta1: new(0.5)}}
}

// loss reads the loss of a result.
func (c *caller) loss(data []byte) float64 {
	c.t.Helper()
	var out tinkerwire.ForwardOutput
	if err := json.Unmarshal(data, &out); err != nil || out.Metrics == nil {
		c.t.Fatalf("%v: %s", err, data)
	}
	return out.Metrics["loss:sum"]
}

// weight is the only weight of the fake model, as a forward pass shows it.
func (c *caller) weight(model string, seq int) float64 {
	c.t.Helper()
	req := backward(model, seq, 0)
	req.ForwardOnly = true
	return -1 - c.loss(c.result(c.ok("forward_backward", req).RequestID)) + 2
}
