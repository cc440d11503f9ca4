package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// An HTTP client talks to a model of any backend, here in process. With [server.Handler] in place of [server.Routes]
// the models can be served to other processes.
func Example() {
	m := art.NewModel("player", nil)
	if err := m.Register(context.Background(), &arttest.Backend{Reply: arttest.Script("Hello!")}); err != nil {
		panic(err)
	}
	routes := server.Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	client := http.Client{Transport: server.Transport(routes, m.Name())}

	body := `{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}`
	response, err := client.Post("http://any/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	var reply struct {
		Model   string
		Choices []struct{ Message art.Message }
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		panic(err)
	}
	fmt.Println(reply.Model, reply.Choices[0].Message.Content)
	// Output: player@0 Hello!
}
