package tinker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// TestSession_Expires: an abandoned session is ended, its run leaves memory, and its weights can be loaded by another.
func TestSession_Expires(t *testing.T) {
	s, h := newFake(t, nil)
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	session, _, _ := strings.Cut(model, ":")
	c.result(c.ok("forward_backward", backward(model, 1, 1)).RequestID)
	c.await("optim_step", step(model, 2))
	path := c.await("save_weights", tinkerwire.Request{ModelID: model, SeqID: 3, Path: "a"}).Path
	waiting := c.ok("optim_step", step(model, 5)).RequestID
	want := c.weight(model, 4)
	c.result(waiting)
	waiting = c.ok("optim_step", step(model, 7)).RequestID // 6 never comes
	s.clean(time.Now().Add(s.opts.SessionTimeout + time.Second))
	if body := string(c.result(waiting)); !strings.Contains(body, "expired") {
		t.Errorf("what has waited: %s", body)
	}
	for path, body := range map[string]any{
		"session_heartbeat": tinkerwire.Request{SessionID: session}, "optim_step": step(model, 8),
	} {
		if status, answer := c.call("POST", path, body); status != http.StatusGone {
			t.Errorf("%s: status %d: %s", path, status, answer)
		}
	}
	again := c.ok("create_session", tinkerwire.Request{}).SessionID
	c.await("load_weights", tinkerwire.Request{SessionID: again, ModelSeqID: new(0), Path: path, LoadOptimizer: true})
	if got := c.weight(again+":train:0", 1); got != want {
		t.Errorf("the weight is %v, was %v", got, want)
	}
}
