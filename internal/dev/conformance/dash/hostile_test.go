package dash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// hostile is what an agent may say to whoever reads it: elements, scripts, an image of another host, commands of a
// terminal, text that runs the other way, and a word that fits into no line.
const hostile = `</div></article><script>window.taken = 1</script>
<img src="https://example.com/x.png" onerror="window.taken = 2"><a href="javascript:window.taken = 3">free</a>
{{.}} ${window.taken = 4} <svg onload="window.taken = 5"><base href="//example.com/">
<style>body { display: none }</style>
"'><form action="https://example.com/"><button autofocus onfocus="window.taken = 6">`

// hostileGroups are groups in which everything that is text is hostile.
func hostileGroups() []*art.TrajectoryGroup {
	text := hostile + "\x1b[2J\x1b]0;title\x07\u202egnp.exe\u2066 \u200b" + strings.Repeat("W", 3000)
	g := &art.TrajectoryGroup{Logs: []string{text}}
	g.Failures = []art.Failure{{Attempt: 3, Type: text, Message: text, Stack: text}}
	for i := range 3 {
		m := art.Assistant(text)
		m.Reasoning = text
		m.ToolCalls = []art.ToolCall{{ID: "a", Name: "tool" + hostile, Arguments: text}}
		m.Sample = &art.Sample{PromptIDs: []int32{1}, IDs: []int32{2, 3}, Logprobs: []float32{-1, -2},
			Finish: art.FinishStop}
		t := art.NewTrajectory(art.System(text), art.User(text), m, art.ToolResult("a", text))
		t.Reward, t.Logs, t.Start, t.Duration = float64(i), []string{text}, time.Unix(1e9, 0), time.Second
		t.Metadata = map[string]any{"label" + hostile: text}
		t.Tools = []art.Tool{{Name: "tool" + hostile, Description: text}}
		g.Trajectories = append(g.Trajectories, t)
	}
	return []*art.TrajectoryGroup{g}
}

// storeHostile stores a run whose texts are hostile.
func storeHostile(t *testing.T, root string) {
	t.Helper()
	r, err := runs.Open(root, "games", "player-1", nil)
	check(t, err)
	check(t, r.WriteModel(rundir.Description{Name: "player-1", Project: "games", Base: hostile, Device: hostile}))
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), []byte("w"), 0o644) }
	check(t, r.Commit(0, write))
	check(t, r.CommitUpdate(1, runs.Update{Groups: hostileGroups(), Metrics: map[string]float64{"reward": 1}}, write))
	r.Close()
}

// TestPage_HostileText: what agents say is text in every view. Nothing of it runs, is asked for, or widens the page.
func TestPage_HostileText(t *testing.T) {
	root, judge := t.TempDir(), dash.NewJudge()
	storeHostile(t, root)
	evil := func(int32) []byte { return []byte(hostile + "\u202e\x1b[2J") }
	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: root, Judge: judge, Stars: true,
		Tokens: func(*rundir.Run) (func(int32) []byte, error) { return evil, nil }})
	check(t, err)
	defer func() { check(t, page.Close()) }()
	b := newBrowser(t, page.URL())
	scored := make(chan error, 1)
	go func() { _, err := judge.Score(b.ctx, hostileGroups()[0]); scored <- err }()
	b.open(page.Link())
	base := evaluate[string](b, "location.origin")
	const at = "?run=games/player-1"
	b.open(base + "/group" + at)
	b.do(chromedp.Click(".star button"))
	b.await("a star", `document.querySelector(".star button.on")`)
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		for _, path := range []string{"/", "/run" + at, "/groups" + at, "/groups" + at + "&failed=1",
			"/groups" + at + "&view=time", "/groups" + at + "&view=batch", "/group" + at, "/group" + at + "&color=logprob",
			"/scenario" + at, "/search" + at + "&q=script", "/search" + at + "&failed=1", "/stars" + at, "/judge"} {
			b.open(base + path)
			b.unharmed(path)
		}
	}
	b.do(chromedp.Click(`#verdict [name=drop]`))
	check(t, <-scored)
	b.clean("hostile text")
}

// unharmed opens all that is folded, and fails the test if a text has done anything.
func (b *browser) unharmed(path string) {
	b.t.Helper()
	evaluate[bool](b, `(document.querySelectorAll("details").forEach((d) => d.open = true), true)`)
	if evaluate[bool](b, `"taken" in window || [...document.links].some((a) => a.host !== location.host) ||
		document.querySelectorAll("main script, main img, main base, main style, [onload], [onerror]").length > 0`) {
		b.t.Errorf("%s: a text became elements", path)
	}
	if over := evaluate[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.t.Errorf("%s is %.0f pixels wider than the screen", path, over)
	}
}
