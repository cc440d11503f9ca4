package tinker_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/tinker"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A server of the Tinker API, for programs that were written for that service. They set TINKER_BASE_URL to its address
// and TINKER_API_KEY to the key.
func Example() {
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	backend := &arttest.Backend{} // a fake; a program opens backend/local
	s, err := tinker.New(backend, &tinker.Options{
		Dir: filepath.Join(dir, "tinker"), Bases: []tinker.Base{{Name: "Qwen/Qwen3-8B", Model: "tiny"}},
	})
	check(err)
	defer s.Close()
	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	check(err)
	listening := httptest.NewServer(handler) // or http.ListenAndServe("127.0.0.1:8000", handler)
	defer listening.Close()

	request, err := http.NewRequest(http.MethodGet, listening.URL+tinker.Prefix+"healthz", nil)
	check(err)
	request.Header.Set("X-API-Key", "tml-secret")
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	fmt.Println(response.StatusCode, string(text))
	// Output: 200 {"status":"ok"}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
