package dash

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
)

// trainer trains the built-in model in steps that the test asks for.
type trainer struct {
	t      *testing.T
	model  *art.Model
	events *art.Events
}

// questions are what the model is asked; the reward is higher for shorter answers.
var questions = []string{"What is 2+2?", "Name a colour."}

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// step gathers groups and trains on them. after may be nil.
func (r *trainer) step(ctx context.Context, after hook) error {
	groups, err := art.GatherGroups(ctx, questions, func(ctx context.Context, q string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.System("Answer briefly."), art.User(q))
		reply, err := r.model.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		t.Reward = -float64(len(reply.Content)) / 10
		t.Logs = []string{"rule: shorter is better"}
		return t, nil
	}, &art.GatherOptions{GroupSize: 4, Seed: uint64(r.model.Step()), After: after, Events: r.events})
	if err != nil {
		return err
	}
	result, err := r.model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-3})
	if err != nil {
		return err
	}
	return r.model.Log(ctx, "train", groups, result.Metrics)
}

// open makes a run of the built-in model, and a page that shows it.
func open(t *testing.T) (*trainer, *dash.Server, *dash.Judge) {
	t.Helper()
	dir := t.TempDir()
	judge := dash.NewJudge()
	backend, err := local.Open(t.Context(), &local.Options{Dir: dir, Progress: io.Discard, Slots: 8, Context: 96})
	check(t, err)
	t.Cleanup(func() { check(t, backend.Close()) })
	var model *art.Model
	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: dir, Judge: judge, Stars: true, Tokens: tokensOf,
		Interval: 100 * time.Millisecond,
		Logprobs: func(ctx context.Context, _ *rundir.Run, _ int, ids []int32) ([]float32, error) {
			logprobs, _, err := backend.Logprobs(ctx, model, ids)
			return logprobs, err
		}})
	check(t, err)
	t.Cleanup(func() { check(t, page.Close()) })
	model = art.NewModel("player-1", &art.ModelOptions{Project: "games", Events: page.Events(), Seed: 1,
		Chat: art.ChatOptions{MaxTokens: new(12)}})
	check(t, model.Register(t.Context(), backend))
	return &trainer{t, model, page.Events()}, page, judge
}

// TestPage_WhileARunTrains watches a run as it trains, and uses every view.
func TestPage_WhileARunTrains(t *testing.T) {
	run, page, judge := open(t)
	b := newBrowser(t, page.URL())
	b.do(chromedp.EmulateViewport(1280, 860))
	for range 3 {
		check(t, run.step(t.Context(), nil))
	}
	b.open(page.Link())
	if at := evaluate[string](b, "location.href"); strings.Contains(at, "token") {
		t.Errorf("the token stays in the address: %s", at)
	}
	b.overview(run)
	b.run(run)
	b.groups()
	b.search()
	b.judge(run, judge)
	b.phone()
	b.clean("in the end")
}

// overview: the list and the chart grow while the run trains.
func (b *browser) overview(run *trainer) {
	b.await("the run", `document.querySelector("#runs")?.innerText.includes("games/player-1")`)
	page := evaluate[string](b, "location.origin") + "/"
	empty := b.emptyPaint(6)
	within := max(300, 3*slices.Min(empty)) // milliseconds; more where the machine has no time for an empty page either
	paints := b.firstPaint(page, within, 12)
	size := evaluate[float64](b, `performance.getEntriesByType("navigation").concat(
		performance.getEntriesByType("resource")).reduce((n, e) => n + e.decodedBodySize, 0)`)
	b.t.Logf("first paints after %v ms, of an empty page %v; %.0f KB before compression", paints, empty, size/1024)
	if size > 300<<10 || size == 0 {
		b.t.Errorf("the page has %.0f bytes, want at most 300 KB", size)
	}
	if best := slices.Min(paints); best > within {
		b.t.Errorf("the first paint comes after %.0f ms, want at most %.0f", best, within)
	}
	before := evaluate[string](b, `document.querySelector("#comparison .line").getAttribute("d")`)
	check(b.t, run.step(b.t.Context(), nil))
	b.await("a longer curve",
		fmt.Sprintf(`document.querySelector("#comparison .line").getAttribute("d") !== %q`, before))
	b.await("the new step", `document.querySelector("#runs tbody td.num").innerText === "4"`)
	b.choose("#compare [name=metric]", "loss/entropy")
	b.await("another metric", `document.querySelector("#comparison h3").innerText === "loss/entropy" &&
		location.search.includes("entropy")`)
	evaluate[bool](b, `(() => { const f = document.querySelector("#comparison .frame").getBoundingClientRect();
		document.querySelector("#comparison .plot").dispatchEvent(new PointerEvent("pointermove",
			{ bubbles: true, clientX: f.left + f.width / 2, clientY: f.top + 50 })); return true; })()`)
	b.await("a reading under the pointer", `document.querySelector(".reading")?.innerText.includes("games/player-1")`)
	b.do(chromedp.Click("#compare [name=bands]"))
	b.await("bands", `document.querySelector("#comparison .frame").ariaLabel.includes("(1 run)")`)
	b.do(chromedp.KeyEvent("x"))
	b.await("a logarithmic axis", `location.search.includes("logx=1") &&
		document.querySelector("#comparison").innerText.includes("step 0 is left out")`)
	b.open(evaluate[string](b, "location.origin") + "/")
	b.shot("overview")
	b.clean("overview")
}

// run: sections, and charts that follow.
func (b *browser) run(run *trainer) {
	b.do(chromedp.Click(`#runs [data-open]`))
	b.await("the page of the run", `document.querySelector("h1")?.innerText === "games/player-1"`)
	b.await("its charts", `document.querySelectorAll("#charts .line").length > 5`)
	check(b.t, run.step(b.t.Context(), nil))
	b.await("the new step", `document.querySelector("#headline").innerText.includes("step 5")`)
	b.do(chromedp.Click(`.chart summary`))
	b.await("the table under a chart", `document.querySelector(".chart details[open] tbody tr")`)
	b.shot("run")
	b.do(chromedp.Click(`.underline a:nth-child(3)`))
	b.await("a section", `location.search.includes("section=")`)
	b.clean("run")
}

// groups: the filter, the time, the batch, the heat map, a star, the scenario.
func (b *browser) groups() {
	base := evaluate[string](b, "location.origin")
	at := "?run=games/player-1&split=train&step=4"
	b.open(base + "/groups" + at)
	b.await("two groups", `document.querySelectorAll("#groups [data-row]").length === 2`)
	b.shot("groups")
	b.choose(`#filter [name=min]`, "100")
	b.await("the filter", `document.querySelector("#groups").innerText.includes("No group passes the filter")`)
	for view, name := range map[string]string{"time": "time", "batch": "batch"} {
		b.open(base + "/groups" + at + "&view=" + view)
		b.await("the view "+view, `document.querySelector(".gantt rect, .pack rect")`)
		b.shot(name)
	}
	b.open(base + "/groups" + at)
	b.do(chromedp.Click(`#groups [data-open]`))
	b.await("a group", `document.querySelectorAll(".column").length === 4`)
	for _, color := range []string{"forced", "advantage", "change", "logprob"} {
		b.choose("[data-color]", color)
		b.await("tokens by "+color, `location.search.includes("color=`+color+`") &&
			document.querySelector(".tokens > span[title]")`)
	}
	if text := evaluate[string](b, `document.querySelector(".tokens > span").title`); !has(text, "probability") {
		b.t.Errorf("a token says %q", text)
	}
	b.do(chromedp.Click(".tokens > span[title]"))
	b.await("the numbers of the token",
		`document.querySelector(".reading")?.innerText.includes("probability")`)
	b.do(chromedp.Click("h1"))
	b.await("no reading", `!document.querySelector(".reading")`)
	b.shot("group")
	b.do(chromedp.Click(".star button"))
	b.await("a star", `document.querySelector(".star button.on")`)
	b.do(chromedp.Navigate(base + "/stars?run=games/player-1"))
	b.await("the starred trajectory", `document.querySelector("#stars [data-open]")`)
	b.shot("stars")
	b.open(base + "/scenario" + at + "&group=0")
	b.await("all steps", `document.querySelectorAll("#steps [data-row]").length === 5`)
	b.shot("scenario")
	b.clean("groups")
}

// search finds what was said.
func (b *browser) search() {
	base := evaluate[string](b, "location.origin")
	b.open(base + "/search?run=games/player-1")
	b.do(chromedp.SendKeys(`main [name=q]`, "colour\r"))
	b.await("hits", `document.querySelectorAll(".hits mark").length > 0`)
	b.shot("search")
	b.clean("search")
}

// judge: a group waits, a person ranks it with the keys, and that is the reward.
func (b *browser) judge(run *trainer, judge *dash.Judge) {
	base := evaluate[string](b, "location.origin")
	b.open(base + "/judge")
	seen := make(chan []float64, len(questions))
	after := func(ctx context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		groups, err := judge.Score(ctx, g)
		for _, g := range groups {
			var rewards []float64
			for _, t := range g.Trajectories {
				rewards = append(rewards, t.Reward)
			}
			seen <- rewards
		}
		return groups, err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.step(b.t.Context(), after) }()
	for i := range questions {
		b.await("a group that waits", `document.querySelectorAll("#verdict .column").length === 4`)
		if i == 0 {
			b.shot("judge")
		}
		for _, key := range []string{"2", "1", "4", "3"} {
			b.do(chromedp.KeyEvent(key))
		}
		ranks := evaluate[string](b, `[...document.querySelectorAll("#verdict [type=number]")].map((f) => f.value).join()`)
		if ranks != "2,1,4,3" {
			b.t.Fatalf("the ranks are %s", ranks)
		}
		b.do(chromedp.SendKeys(`#verdict [name=note]`, "clear"), chromedp.Click(`#verdict .primary`))
		if got := fmt.Sprintf("%.3f", <-seen); got != "[0.667 1.000 0.000 0.333]" {
			b.t.Errorf("the rewards are %s", got)
		}
	}
	check(b.t, <-ended)
	b.clean("judge")
}

// phone: nothing is wider than a small screen.
func (b *browser) phone() {
	base := evaluate[string](b, "location.origin")
	b.do(chromedp.EmulateViewport(390, 800))
	at := "?run=games/player-1&split=train&step=4"
	for _, path := range []string{"/", "/run" + at, "/groups" + at, "/group" + at + "&group=0", "/search" + at, "/judge"} {
		b.open(base + path)
		if over := evaluate[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			b.t.Errorf("%s is %.0f pixels wider than a phone", path, over)
		}
		b.accessible("phone " + path)
	}
}
