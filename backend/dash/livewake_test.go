package dash

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// woken is a response whose stream is woken as it begins.
type woken struct {
	*httptest.ResponseRecorder
	live *live
	end  context.CancelFunc
}

func (w woken) Header() http.Header {
	w.live.wake()
	return w.ResponseRecorder.Header()
}

func (w woken) Write(data []byte) (int, error) {
	defer w.end()
	return w.ResponseRecorder.Write(data)
}

// TestServe_WokenAtOnce: a stream that is woken before it has sent anything sends the state and does not hang.
func TestServe_WokenAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l := newLive(ctx, NewJudge())
	w := woken{httptest.NewRecorder(), l, cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil))
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the stream hangs")
	}
	require.Contains(t, w.Body.String(), "data: ")
}
