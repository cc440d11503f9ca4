package dash_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// The page shows the runs of a folder, and prints a link that lets one browser in. A program that trains gives
// page.Events() to its model, so that the page shows rollouts as they run.
func Example() {
	dir, err := os.MkdirTemp("", "art") // that of a program is .art
	check(err)
	defer os.RemoveAll(dir)
	evaluated(dir)

	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: dir})
	check(err)
	defer page.Close()

	text := browse(page.Link()) // fmt.Println(page.Link()), for a person
	fmt.Println("shows games/player:", strings.Contains(text, "games/player"))
	// Output: shows games/player: true
}

// evaluated stores a run with an evaluation of step 0, as backend/local does.
func evaluated(root string) {
	run, err := runs.Open(root, "games", "player", nil)
	check(err)
	defer run.Close()
	check(run.WriteModel(rundir.Description{Name: "player", Project: "games", Base: "tiny"}))
	check(run.Commit(0, func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), nil, 0o600) }))
	check(run.Log("val", 0, map[string]float64{"val/reward": 0.25}))
}

// browse does what a browser does with a link: it keeps the cookie, and goes on to the page.
func browse(link string) string {
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
