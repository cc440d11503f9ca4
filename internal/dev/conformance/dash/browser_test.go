package dash

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a Chromium that notes what goes wrong in its pages.
type browser struct {
	t    *testing.T
	ctx  context.Context
	host string // the only one that may be asked
	into string // the folder of screenshots; "" makes none

	mu       sync.Mutex
	problems []string
	requests int
}

// newBrowser starts a Chromium that has nothing of an earlier one.
func newBrowser(t *testing.T, page string) *browser {
	t.Helper()
	path := os.Getenv("ART_CHROMIUM")
	if path == "" {
		t.Skip("ART_CHROMIUM is not set: the path of chromium (apt-get install chromium)")
	}
	address, err := url.Parse(page)
	check(t, err)
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync"} {
		flags = append(flags, chromedp.Flag(flag, true))
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 12*time.Minute)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx, host: address.Host}
	check(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	check(t, chromedp.Listen(ctx, b.note))
	return b
}

// note looks at what the browser reports.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked(e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.problems = append(b.problems, fmt.Sprintf("console.%s of the page", e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

// asked notes requests to another host.
func (b *browser) asked(address string) {
	b.requests++
	u, err := url.Parse(address)
	if err != nil || u.Host != b.host && u.Scheme != "about" && u.Scheme != "data" {
		b.problems = append(b.problems, "request to "+address)
	}
}

// clean fails the test if something went wrong since the last call.
func (b *browser) clean(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("%s: %s", where, p)
	}
	if b.requests == 0 {
		b.t.Errorf("%s: the browser reports no requests, so that they cannot be checked", where)
	}
	b.problems = nil
}

// do runs steps, which must succeed.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	check(b.t, chromedp.Do(b.ctx, steps...))
}

// open goes to a page and waits until it is live.
func (b *browser) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.await("the stream of events", `document.documentElement.dataset.live === "yes"`)
}

// evaluate returns the value of an expression.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	check(b.t, err)
	return value
}

// await waits until an expression is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && is {
			return
		}
	}
	b.t.Fatalf("did not come: %s\n%s", what, evaluate[string](b, "document.body.innerText"))
}

// choose selects a value as a person would.
func (b *browser) choose(selector, value string) {
	b.t.Helper()
	b.await(selector, fmt.Sprintf("document.querySelector(%q)", selector))
	evaluate[bool](b, fmt.Sprintf(`(() => { const s = document.querySelector(%q); s.value = %q;
		s.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`, selector, value))
}

// accessible fails the test when axe-core finds something serious.
func (b *browser) accessible(where string) {
	b.t.Helper()
	path := os.Getenv("ART_AXE")
	if path == "" {
		return
	}
	script, err := os.ReadFile(path)
	check(b.t, err)
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](string(script)+`;
		axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) =>
			v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) =>
				n.html.slice(0, 160) + " " + n.any.map((a) => a.message)).join(" | ")))`,
		chromedp.EvalAwaitPromise))
	check(b.t, err)
	for _, text := range found {
		b.t.Errorf("%s: axe: %s", where, text)
	}
}

// shot looks at a view in light and in dark: whether it is accessible, and for screenshots. The page is not left.
func (b *browser) shot(name string) {
	b.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.accessible(name + " " + theme)
		if b.into == "" {
			continue
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		check(b.t, err)
		check(b.t, os.WriteFile(fmt.Sprintf("%s/dash-%s-%s.png", b.into, name, theme), picture, 0o644))
	}
	b.theme("light")
}

// theme presses the button that switches between light and dark, which has the name of the other one.
func (b *browser) theme(name string) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => { const button = document.querySelector("#theme");
		if (button.textContent.toLowerCase() === %q) button.click(); return true; })()`, name))
	dark := evaluate[bool](b, `getComputedStyle(document.body).colorScheme === "dark"`)
	if dark != (name == "dark") {
		b.t.Errorf("the page is not %s", name)
	}
}

// emptyPaint is the time of [browser.firstPaint] of a page with a letter: what the browser and the machine take.
func (b *browser) emptyPaint(times int) (all []float64) {
	b.t.Helper()
	for range times {
		b.do(chromedp.Navigate("data:text/html,<title>empty</title><p>x"))
		all = append(all, b.painted())
	}
	return all
}

// painted returns after how many milliseconds something of the page was seen.
func (b *browser) painted() float64 {
	b.t.Helper()
	b.await("the first paint", `performance.getEntriesByName("first-contentful-paint").length > 0`)
	return math.Round(evaluate[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
}

// firstPaint opens a page until something was seen within so many milliseconds, at most a number of times, and returns
// after how many it was seen each time: other programs may hold up some.
func (b *browser) firstPaint(address string, within float64, times int) (all []float64) {
	b.t.Helper()
	for len(all) < times {
		b.open(address)
		paint := b.painted()
		if all = append(all, paint); paint <= within {
			break
		}
	}
	return all
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// has reports whether a text has another, in any case.
func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
