package dash

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/basemodel"
)

// TestShots makes the screenshots of the documentation, as the package comment says.
func TestShots(t *testing.T) {
	dir, into := os.Getenv("ART_RUNS"), os.Getenv("ART_SHOTS")
	if dir == "" || into == "" {
		t.Skip("ART_RUNS and ART_SHOTS are not set: the folders of runs and of screenshots")
	}
	runs, err := rundir.List(dir)
	check(t, err)
	if len(runs) == 0 {
		t.Fatalf("%s has no runs", dir)
	}
	into, err = filepath.Abs(into)
	check(t, err)
	t.Chdir(filepath.Dir(dir)) // the page shows the name of the folder
	dir = filepath.Base(dir)
	judge := dash.NewJudge()
	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: dir, Judge: judge, Stars: true, Tokens: tokensOf})
	check(t, err)
	defer func() { check(t, page.Close()) }()
	b := newBrowser(t, page.URL())
	b.into = into
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open(page.Link())
	b.shots(runs[0], judge)
	b.clean("screenshots")
}

// tokensOf returns the texts of the tokens of a run.
func tokensOf(r *rundir.Run) (func(int32) []byte, error) {
	tok, err := basemodel.Tokenizer(r.About().Base)
	if err != nil {
		return nil, err
	}
	return tok.TokenBytes, nil
}

// shots looks at each view of a run.
func (b *browser) shots(r *rundir.Run, judge *dash.Judge) {
	base := evaluate[string](b, "location.origin")
	stored, err := r.Trajectories()
	check(b.t, err)
	steps := stored["train"]
	about, last := r.About(), slices.Max(steps)
	name := url.QueryEscape(about.Project + "/" + about.Name)
	at := fmt.Sprintf("?run=%s&split=train&step=%d", name, last)
	early := fmt.Sprintf("?run=%s&split=train&step=%d", name, steps[len(steps)/5]) // a policy that is not sure yet
	for _, view := range []struct{ name, path, ready string }{
		{"overview", "/", "#comparison .line"},
		{"seeds", "/?bands=1", "#comparison .band"},
		{"run", "/run?run=" + name, "#charts .line"},
		{"groups", "/groups" + at, "#groups [data-row]"},
		{"time", "/groups" + at + "&view=time", ".gantt rect"},
		{"batch", "/groups" + at + "&view=batch", ".pack rect"},
		{"group", "/group" + early + "&group=1&color=logprob", ".tokens > span[title]"},
		{"scenario", "/scenario" + at + "&group=0&by=index", "#steps [data-row]"},
		{"search", "/search" + at + "&max=0", ".hits article"},
	} {
		b.open(base + view.path)
		b.await(view.name, fmt.Sprintf("document.querySelector(%q)", view.ready))
		b.shot(view.name)
	}
	b.open(base + "/group" + at + "&group=0")
	b.do(chromedp.Click(".star button"))
	b.await("a star", `document.querySelector(".star button.on")`)
	b.do(chromedp.Navigate(base + "/stars?run=" + name))
	b.await("the starred trajectory", `document.querySelector("#stars [data-open]")`)
	b.shot("stars")
	b.do(chromedp.Click("#stars [data-open]"))
	b.await("the group of the star", `document.querySelector(".star button.on")`)
	b.do(chromedp.Click(".star button.on")) // the folder stays as it was
	b.await("no star", `!document.querySelector(".star button.on")`)
	b.judgeShot(r, last, judge, base)
	b.do(chromedp.EmulateViewport(390, 844))
	for _, view := range []struct{ name, path, ready string }{
		{"phone-run", "/run?run=" + name, "#charts .line"},
		{"phone-group", "/group" + early + "&group=1&color=logprob", ".tokens > span[title]"},
	} {
		b.open(base + view.path)
		b.await(view.name, fmt.Sprintf("document.querySelector(%q)", view.ready))
		b.shot(view.name)
	}
}

// judgeShot lets a stored group wait for a person.
func (b *browser) judgeShot(r *rundir.Run, step int, judge *dash.Judge, base string) {
	g, err := r.ReadGroup("train", step, 0)
	check(b.t, err)
	g.Trajectories = g.Trajectories[:min(4, len(g.Trajectories))]
	scored := make(chan error, 1)
	go func() {
		_, err := judge.Score(b.ctx, g)
		scored <- err
	}()
	b.open(base + "/judge")
	b.await("a group that waits", `document.querySelector("#verdict .column")`)
	b.do(chromedp.KeyEvent("2"), chromedp.KeyEvent("1"))
	b.shot("judge")
	b.do(chromedp.Click(`#verdict [name=drop]`))
	select {
	case err := <-scored:
		check(b.t, err)
	case <-time.After(time.Minute):
		b.t.Error("the group still waits")
	}
}
