package dash_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/local"
)

// The program that trains serves the page, and prints a link that lets one browser in.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art") // a program leaves Dir out: .art
	check(err)
	defer os.RemoveAll(dir)
	backend, err := local.Open(ctx, &local.Options{Dir: dir})
	check(err)
	defer backend.Close()

	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: dir})
	check(err)
	defer page.Close()
	model := art.NewModel("player", &art.ModelOptions{Project: "games", Base: "tiny", Events: page.Events()})
	check(model.Register(ctx, backend))
	check(model.Log(ctx, "val", nil, map[string]float64{"reward": 0.25}))

	text := open(page.Link()) // fmt.Println(page.Link()), for a person
	fmt.Println("shows games/player:", strings.Contains(text, "games/player"))
	// Output: shows games/player: true
}

// open does what a browser does with a link: it keeps the cookie, and follows to the page.
func open(link string) string {
	jar, err := cookiejar.New(nil)
	check(err)
	response, err := (&http.Client{Jar: jar}).Get(link)
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	return string(text)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
