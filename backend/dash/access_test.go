package dash_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
)

// answer is what a handler answers, without a connection.
func answer(h http.Handler, path, query string) (status int, body string) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.URL = &url.URL{Path: path, RawQuery: query}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// start serves a page with a key.
func start(t *testing.T, opts *dash.Options) *dash.Server {
	t.Helper()
	s, err := dash.Start("127.0.0.1:0", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()); require.NoError(t, s.Wait()) })
	return s
}

// browser keeps cookies and follows redirects.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar}
}

func statusOf(t *testing.T, c *http.Client, address string) (status int, last string) {
	t.Helper()
	response, err := c.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Request.URL.String()
}

// TestLink_OnceThenCookie: a link lets one browser in. The token leaves the address, and another browser is refused.
func TestLink_OnceThenCookie(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, stepGroups)
	s := start(t, &dash.Options{Dir: root})
	link := s.Link()
	first, second := browser(t), browser(t)
	status, _ := statusOf(t, first, s.URL())
	require.Equal(t, http.StatusUnauthorized, status)
	status, at := statusOf(t, first, link)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, s.URL(), at)
	status, _ = statusOf(t, first, s.URL()+"run?run=games/player-1")
	require.Equal(t, http.StatusOK, status)
	status, _ = statusOf(t, second, link)
	require.Equal(t, http.StatusUnauthorized, status, "the token was used")
	status, _ = statusOf(t, first, link)
	require.Equal(t, http.StatusOK, status, "the cookie is enough")
	status, _ = statusOf(t, second, s.Link())
	require.Equal(t, http.StatusOK, status, "a new link")
}

func TestLink_CookieIsStrict(t *testing.T) {
	s := start(t, &dash.Options{Dir: t.TempDir()})
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := c.Get(s.Link())
	require.NoError(t, err)
	response.Body.Close()
	cookie := response.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "./", response.Header.Get("Location"))
	require.NotContains(t, s.Link(), cookie.Value)
}

// styleOf returns the address of the style sheet of the page that asks for a key.
func styleOf(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return regexp.MustCompile(`assets/app-[0-9a-f]+\.css`).FindString(string(body))
}

// TestAccess: the same rules as those of the server: Host, Origin and key.
func TestAccess(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, stepGroups)
	judge := dash.NewJudge()
	s := start(t, &dash.Options{Dir: root, Stars: true, Judge: judge,
		Access: &art.HandlerOptions{Keys: []string{"key-1"}}})
	send := func(method, path string, headers ...string) int {
		form := "run=games/player-1&split=train&step=0&group=0&trajectory=0&on=1"
		r, err := http.NewRequest(method, s.URL()+path, strings.NewReader(form))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == "Host" {
				r.Host = headers[i+1]
			}
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}).Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		requireSafe(t, response)
		return response.StatusCode
	}
	host := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/")
	require.Equal(t, 401, send("GET", ""))
	require.Equal(t, 401, send("GET", "events"))
	require.Equal(t, 200, send("GET", styleOf(t, s.URL())), "the page that asks for the key has its style")
	require.Equal(t, 401, send("GET", "", "X-Api-Key", "key-2"))
	require.Equal(t, 401, send("GET", "?token=wrong"))
	require.Equal(t, 401, send("GET", "", "Cookie", "art_dash_1=x"))
	require.Equal(t, 200, send("GET", "", "X-Api-Key", "key-1"))
	require.Equal(t, 200, send("GET", "", "Authorization", "Bearer key-1"))
	require.Equal(t, 403, send("GET", "", "X-Api-Key", "key-1", "Host", "evil.example"))
	require.Equal(t, 403, send("GET", "", "X-Api-Key", "key-1", "Origin", "https://evil.example"))
	require.Equal(t, 401, send("POST", "star"))
	require.Equal(t, 403, send("POST", "star", "X-Api-Key", "key-1", "Origin", "https://evil.example"))
	require.Equal(t, 403, send("POST", "star", "X-Api-Key", "key-1", "Origin", "null"))
	require.Equal(t, 403, send("POST", "star", "X-Api-Key", "key-1", "Sec-Fetch-Site", "cross-site"))
	require.Equal(t, 303, send("POST", "star", "X-Api-Key", "key-1", "Origin", "http://"+host))
	require.Equal(t, 405, send("POST", "run?run=games/player-1", "X-Api-Key", "key-1"))
	require.Equal(t, 405, send("DELETE", "run?run=games/player-1", "X-Api-Key", "key-1"))
}

// TestSignIn: the page asks for the key, and a wrong one is refused.
func TestSignIn(t *testing.T) {
	s := start(t, &dash.Options{Dir: t.TempDir(), Access: &art.HandlerOptions{Keys: []string{"key-1"}}})
	c := browser(t)
	post := func(key string) int {
		response, err := c.PostForm(s.URL(), url.Values{"key": {key}})
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	require.Equal(t, 401, post("wrong"))
	status, _ := statusOf(t, c, s.URL())
	require.Equal(t, 401, status)
	require.Equal(t, 200, post("key-1"))
	status, _ = statusOf(t, c, s.URL())
	require.Equal(t, 200, status)
}

func TestNew_Invalid(t *testing.T) {
	_, err := dash.New(&dash.Options{Interval: -1})
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = dash.New(&dash.Options{Access: &art.HandlerOptions{Hosts: []string{"*"}}})
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = dash.Start("127.0.0.1:-1", nil)
	require.ErrorContains(t, err, "choose another address")
}

// TestMounted: the page works under a path.
func TestMounted(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, stepGroups)
	h, err := dash.New(&dash.Options{Dir: root, Access: &art.HandlerOptions{Keys: []string{"k"}}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/dash/", http.StripPrefix("/dash", h))
	s := httptest.NewServer(mux)
	t.Cleanup(func() { require.NoError(t, h.Close()); s.Close() })
	c := browser(t)
	status, at := statusOf(t, c, h.Link(s.URL+"/dash/"))
	require.Equal(t, 200, status)
	require.Equal(t, s.URL+"/dash/", at)
	status, _ = statusOf(t, c, s.URL+"/dash/run?run=games/player-1")
	require.Equal(t, 200, status)
}
