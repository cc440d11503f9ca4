package child_test

import (
	"context"
	"fmt"
	"os"

	"github.com/goart-dev/art/backend/server/child"
)

// A program that serves in a process of its own. This one is its own server, as its environment says; without Command
// it would be art serve, with Args such as --train tiny.
func Example() {
	program, err := os.Executable()
	check(err)
	server, err := child.Start(context.Background(), &child.Options{
		Command: []string{program}, Env: []string{roleVariable + "=example"},
	})
	check(err)
	fmt.Println("serves", server.Models, "to clients with a key:", server.URL != "" && server.Key != "")
	check(server.Close())
	// Output: serves [tiny] to clients with a key: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
