package wandb_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A server for programs that train with openpipe-art's ServerlessBackend. They give it the address and the key.
func Example() {
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	backend := &arttest.Backend{Reply: arttest.Script("Hello!")} // a fake; a program opens backend/local
	s, err := wandb.New(backend, &wandb.Options{Dir: filepath.Join(dir, "wandb"), Bases: []wandb.Base{{Name: "tiny"}}})
	check(err)
	defer s.Close()
	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"secret"}})
	check(err)
	listening := httptest.NewServer(handler) // or http.ListenAndServe("127.0.0.1:8000", handler)
	defer listening.Close()

	body := `{"project": "games", "name": "player", "base_model": "tiny"}`
	request, err := http.NewRequest(http.MethodPost, listening.URL+wandb.Prefix+"models", strings.NewReader(body))
	check(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer secret")
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	var created struct{ Entity, Project, Name string }
	check(json.NewDecoder(response.Body).Decode(&created))
	fmt.Println(created.Entity, created.Project, created.Name)
	// Output: default games player
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
