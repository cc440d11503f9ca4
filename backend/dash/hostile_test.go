package dash_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
)

// hostile are texts that must be shown and nothing else.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</textarea><svg onload=alert(1)>`,
	`javascript:alert(1)`, "\x1b[2J\x1b]0;owned\x07", "\u202egnp.exe\u202c", "\u2066hidden\u2069", "a\u200bb\ufeff",
	"\xff\xfe not UTF-8", "{{.Data}} ${1} <!--", "\U000e0041\U000e0042", "line\u2028separator", "\x00",
}

// hostileGroups put these texts everywhere.
func hostileGroups(int) []*art.TrajectoryGroup {
	g := &art.TrajectoryGroup{Logs: hostile, Metrics: map[string]float64{`<b>"'`: 1}}
	for _, text := range hostile {
		t := trajectory(float64(len(text)), 0, text, text)
		t.Messages = append(t.Messages, art.Message{Role: art.Role(text), Name: text, Reasoning: text,
			ToolCalls: []art.ToolCall{{ID: text, Name: text, Arguments: text}}}, art.ToolResult(text, text))
		t.Tools = []art.Tool{{Name: text, Description: text}}
		t.Logs = []string{text}
		t.Metadata = map[string]any{`<i>`: strings.ToValidUTF8(text, "?")}
		t.Metrics = map[string]float64{`<script>`: 1}
		t.AdditionalHistories = []art.History{{Messages: []art.Message{art.User(text)}}}
		g.Trajectories = append(g.Trajectories, t)
		g.Failures = append(g.Failures, art.Failure{Type: text, Message: text, Stack: text})
	}
	return []*art.TrajectoryGroup{g}
}

// dangerous is what no page may have: a script or a handler within it, or a character that would not be seen.
var dangerous = regexp.MustCompile(`(?i)<script>|<img|<svg onload|onerror=[a-z]*[^&]*>|<b>"|` +
	`javascript:alert\(1\)["']|` +
	"[\x00-\x08\x0b-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069\ufeff\u2028]|[\U000e0000-\U000e007f]")

// tags are the elements of a page, without texts.
var tags = regexp.MustCompile(`<[a-zA-Z/][^>]*>`)

func TestPages_HostileText(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, hostileGroups)
	tokens := func(*rundir.Run) (func(int32) []byte, error) {
		return func(id int32) []byte { return []byte{byte(id)} }, nil
	}
	s := serve(t, &dash.Options{Dir: root, Tokens: tokens, Stars: true})
	for _, path := range append(pages, `/search?run=games/player-1&q=<script>`, `/?q="><script>`, `/nothing<script>`,
		`/search?run=games/player-1&q=%1b%5b2J`, `/run?run="><script>`) {
		status, body := get(t, s, strings.ReplaceAll(strings.ReplaceAll(path, "<", "%3c"), `"`, "%22"))
		if strings.HasPrefix(path, "/text") || strings.HasPrefix(path, "/csv") {
			continue // downloads, which no browser shows
		}
		require.Less(t, status, 500, "%s\n%s", path, body)
		found := dangerous.FindStringIndex(body)
		if found != nil {
			t.Errorf("%s: %q", path, body[max(0, found[0]-80):min(len(body), found[1]+80)])
		}
		for _, tag := range tags.FindAllString(body, -1) {
			require.NotRegexp(t, `(?i)\son[a-z]+=|\sstyle=|src="?(http|//|javascript)`, tag, path)
		}
	}
	_, body := get(t, s, "/group?run=games/player-1")
	require.Contains(t, body, "&lt;script&gt;alert(1)&lt;/script&gt;")
	require.Contains(t, body, `<span class="ctl">␛</span>[2J`)
	require.Contains(t, body, `<span class="ctl">U+202E</span>gnp.exe`)
	require.Contains(t, body, `<span class="ctl">FF</span>`)
}

// TestPages_LongText: a message of 10 MB is shown in part, and downloaded whole.
func TestPages_LongText(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 10<<20/16)
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, func(int) []*art.TrajectoryGroup {
		g := &art.TrajectoryGroup{}
		for range 3 {
			g.Trajectories = append(g.Trajectories, &art.Trajectory{History: art.History{
				Messages: []art.Message{art.User("short"), art.User(long), sampled("yes", 0, -1)},
			}}, &art.Trajectory{Reward: 1, History: art.History{
				Messages: []art.Message{art.User("short"), {Role: art.RoleAssistant, Reasoning: long,
					ToolCalls: []art.ToolCall{{Name: "f", Arguments: long}}}},
			}})
		}
		return []*art.TrajectoryGroup{g}
	})
	s := serve(t, &dash.Options{Dir: root})
	for _, path := range []string{"/group?run=games/player-1", "/search?run=games/player-1&q=abcdef0",
		"/scenario?run=games/player-1", "/groups?run=games/player-1&view=batch"} {
		status, body := get(t, s, path)
		require.Equal(t, http.StatusOK, status)
		require.Less(t, len(body), 300<<10, path)
	}
	_, body := get(t, s, "/group?run=games/player-1&order=attempt")
	require.Contains(t, body, "All of it")
	_, whole := get(t, s, "/text?run=games/player-1&group=0&trajectory=0&message=1")
	require.True(t, whole == long)
}

// FuzzQuery: no address makes the server fail, and no page has what it should not.
func FuzzQuery(f *testing.F) {
	root := f.TempDir()
	store(f, root, "games", "player-1", 2, hostileGroups)
	h, err := dash.New(&dash.Options{Dir: root, Stars: true, Judge: dash.NewJudge()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, h.Close()) })
	for _, path := range pages {
		name, query, _ := strings.Cut(path, "?")
		f.Add(name, query)
	}
	f.Add("/judge", "mode=score")
	f.Add("/group", "run=games/player-1&from=4294967296&to=-1")
	f.Fuzz(func(t *testing.T, path, query string) {
		if path == "/events" {
			return // it does not end
		}
		status, body := answer(h, path, query)
		require.Less(t, status, 500, body)
		redirect := status >= 300 && status < 400 // of net/http, for a path that is not clean; no browser shows its text
		if path != "/text" && path != "/csv" && !redirect {
			require.False(t, dangerous.MatchString(body), "%s?%s\n%s", path, query, body)
		}
	})
}
