package server

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// bodies are requests whose size grows with n, by the element that is repeated.
var bodies = map[string]func(n int) string{
	"tools without a type": func(n int) string { return hello(`, "tools": [` + list(n, `{}`) + `]`) },
	"tools without a name": func(n int) string {
		return hello(`, "tools": [` + list(n, `{"type":"function","function":{"name":""}}`) + `]`)
	},
	"tools": func(n int) string {
		return hello(`, "tools": [` + list(n, `{"type":"function","function":{"name":"f%d"}}`) + `]`)
	},
	"roles":          func(n int) string { return `{"model": "player", "messages": [` + list(n, `{"role":"x"}`) + `]}` },
	"empty messages": func(n int) string { return `{"model": "player", "messages": [` + list(n, `{}`) + `]}` },
	"messages": func(n int) string {
		return `{"model": "player", "messages": [` + list(n, `{"role":"user","content":"a"}`) + `]}`
	},
	"parts of another type": func(n int) string {
		return withMessage(`"role":"user","content":[` + list(n, `{"type":"image_url"}`) + `]`)
	},
	"parts": func(n int) string {
		return withMessage(`"role":"user","content":[` + list(n, `{"type":"text","text":"a"}`) + `]`)
	},
	"keys of a request": func(n int) string { return hello(`,` + list(4*n, `"k%d":1`)) },
	"keys of a message": func(n int) string {
		return withMessage(`"role":"user","content":"a",` +
			list(4*n, `"k%d":1`))
	},
	"one key of a message": func(n int) string { return withMessage(`"role":"user",` + list(4*n, `"content":"a"`)) },
	"one key of a request": func(n int) string { return hello(`,` + list(4*n, `"tools":[{}]`)) },
	"keys of a tool": func(n int) string {
		return hello(`, "tools": [{"type":"function","function":{"name":"f",` + list(4*n, `"k%d":1`) + `}}]`)
	},
	"keys of a schema": func(n int) string {
		return hello(`, "tools": [{"type":"function","function":{"name":"f","parameters":{` + list(4*n, `"k%d":1`) + `}}}]`)
	},
	"keys of the template": func(n int) string {
		return hello(`, "chat_template_kwargs": {` + list(4*n, `"k%d":1`) +
			`}`)
	},
	"tool calls": func(n int) string {
		return withMessage(`"role":"assistant","tool_calls":[` +
			list(n, `{"id":"%d","function":{"name":"f","arguments":"{}"}}`) + `]`)
	},
	"tool calls without names": func(n int) string {
		return withMessage(`"role":"assistant","tool_calls":[` +
			list(n, `{}`) + `]`)
	},
	"keys of a call": func(n int) string {
		return withMessage(`"role":"assistant","tool_calls":[{"function":{"name":"f",` + list(4*n, `"k%d":1`) + `}}]`)
	},
	"tool calls of messages": func(n int) string {
		return `{"model": "player", "messages": [` + list(n/100,
			`{"role":"assistant","tool_calls":[`+list(100, `{"id":"1","function":{"name":"f"}}`)+`]}`) + `]}`
	},
	"stop strings":       func(n int) string { return hello(`, "stop": [` + list(n, `"a"`) + `]`) },
	"empty stop strings": func(n int) string { return hello(`, "stop": [` + list(n, `""`) + `]`) },
	"objects in objects": func(n int) string {
		return withMessage(`"role":"user","x":` + strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n))
	},
	"lists in lists": func(n int) string {
		return hello(`, "tools": ` + strings.Repeat(`[`, n) +
			strings.Repeat(`]`, n))
	},
	"digits of a temperature": func(n int) string { return hello(`, "temperature": 1` + strings.Repeat(`0`, n)) },
	"digits of an integer":    func(n int) string { return hello(`, "max_tokens": 1` + strings.Repeat(`0`, n)) },
	"digits of a seed":        func(n int) string { return hello(`, "seed": 1` + strings.Repeat(`0`, n)) },
	"digits of a schema": func(n int) string {
		return hello(`, "tools": [{"type":"function","function":{"name":"f","parameters":{"a":1` + strings.Repeat(`0`, n) +
			`}}}]`)
	},
	"values not supported": func(n int) string { return hello(`, "guided_json": {` + list(n, `"%d":1`) + `}`) },
	"biases":               func(n int) string { return hello(`, "logit_bias": {` + list(n, `"%d":1`) + `}`) },
	"stop tokens":          func(n int) string { return hello(`, "stop_token_ids": [` + list(n, `%d`) + `]`) },
	"letters of a role":    func(n int) string { return withMessage(`"role":"` + strings.Repeat(`x`, n) + `"`) },
	"letters of a model": func(n int) string {
		return `{"model": "` + strings.Repeat(`\u003c`, n) + `", "messages": [{"role":"user"}]}`
	},
	"escapes": func(n int) string { return withMessage(`"role":"user","content":"` + strings.Repeat(`\\\"`, n) + `"`) },
}

// TestRoutes_LinearWork guards against quadratic time and memory, such as {"tools":[{},{},...]} of 60 KB that took 2.6
// s and 10 GB because its problems were joined with +=. A body four times as large may take about four times as much,
// and its response is short.
func TestRoutes_LinearWork(t *testing.T) {
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			const n = 1000
			small, large := measure(t, body(n)), measure(t, body(4*n))
			if ratio := float64(large.bytes) / float64(small.bytes); ratio > 8 {
				t.Errorf("%d elements allocate %d bytes, %d allocate %d: %.1f times as much",
					n, small.bytes, 4*n, large.bytes, ratio)
			}
			// Quadratic scans do not allocate. A linear decoder takes some microseconds per element.
			if ratio := float64(large.time) / float64(small.time); ratio > 9 && large.time > 4*n*40*time.Microsecond {
				t.Errorf("%d elements compute for %v, %d for %v: %.1f times as long", n, small.time, 4*n, large.time, ratio)
			}
			if large.answer > 8<<10 {
				t.Errorf("the answer has %d bytes", large.answer)
			}
		})
	}
}

// work is the cost of a request.
type work struct {
	bytes  uint64        // allocated
	time   time.Duration // CPU time, the shortest of several runs
	answer int           // bytes
}

// measure sends a body to a handler and returns its cost, without garbage collection.
func measure(t *testing.T, body string) work {
	h := newHandler(t, reply(art.Message{Content: "Hi"}))
	w := work{time: time.Hour, bytes: 1 << 62}
	for range 2 {
		runtime.GC()
		percent := debug.SetGCPercent(-1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpuTime()
		answer := post(h, body)
		w.time = min(w.time, cpuTime()-start)
		runtime.ReadMemStats(&after)
		debug.SetGCPercent(percent)
		w.bytes, w.answer = min(w.bytes, after.TotalAlloc-before.TotalAlloc), answer.Body.Len()
		if answer.Code != http.StatusOK && answer.Code != http.StatusBadRequest && answer.Code != http.StatusNotFound {
			t.Fatalf("status %d: %.200s", answer.Code, answer.Body)
		}
	}
	return w
}
