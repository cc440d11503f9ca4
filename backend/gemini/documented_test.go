package gemini_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/gemini"
)

// service is the API in place of the network.
type service struct{ asked []string }

// RoundTrip implements [http.RoundTripper].
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.URL.Host+" "+path.Base(r.URL.Path)) // the body does not name it
	w := httptest.NewRecorder()
	said("STOP", hi)(w, r)
	response := w.Result()
	response.Request = r
	return response, nil
}

// TestDocumented runs the code of the package comment, and compares the model that the API is asked for. It leaves no
// files.
func TestDocumented(t *testing.T) {
	s := &service{}
	network := http.DefaultTransport
	http.DefaultTransport = s
	defer func() { http.DefaultTransport = network }()
	t.Chdir(t.TempDir())
	t.Setenv("GEMINI_BASE_URL", "")
	t.Setenv("GEMINI_API_KEY", key)
	ctx := t.Context()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}

	backend, err := gemini.Open(ctx, &gemini.Options{MaxSpend: 5})
	check(err)
	model := art.NewModel("judge", &art.ModelOptions{Base: "gemini-2.5-flash", Frozen: true})
	err = model.Register(ctx, backend)
	check(err)
	reply, err := model.Chat(ctx, art.NewTrajectory(art.User("Hello?")), nil)
	if err != nil || reply.Content != "Hi." {
		t.Errorf("reply %+v, error %v", reply, err)
	}
	want := []string{"generativelanguage.googleapis.com gemini-2.5-flash:generateContent"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked for %q, want %q", s.asked, want)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("the code left %v, error %v", left, err)
	}
}
