package dash

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art/internal/quantity"
)

//go:embed assets
var assets embed.FS

// page is what a template makes HTML of.
type page struct {
	name  string // of the template
	Title string
	Runs  []string // that the page shows; "*": any. It is updated when one of them changes
	Data  any

	Theme               string // "": that of the system
	Crumbs              []crumb
	Judging             bool
	Waiting             int
	Script, Style, Icon string
}

// pairs are metrics by name, as a page lists them.
func pairs(metrics map[string]float64) (list [][2]string) {
	for _, key := range sortedKeys(metrics) {
		list = append(list, [2]string{key, number(metrics[key])})
	}
	return list
}

// crumb is a link of the way to a page.
type crumb struct{ Text, Link string }

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"number": number, "visible": visible, "link": link, "ago": ago, "now": time.Now, "join": strings.Join,
	"plural": quantity.Of, "inc": func(n int) int { return n + 1 },
}).ParseFS(assets, "assets/*.html"))

// link is the address of a page with the parameters that follow, name and value in turn. Those that are "" are left
// out.
func link(path string, params ...any) string {
	query := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if value := fmt.Sprint(params[i+1]); value != "" {
			query.Set(fmt.Sprint(params[i]), value)
		}
	}
	return localURL(path, query)
}

// page serves what a function makes of a request.
func (h *Handler) page(make func(*http.Request) (*page, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := make(r)
		if err != nil {
			h.failPage(w, r, statusOf(err), err)
			return
		}
		h.send(w, r, http.StatusOK, p)
	})
}

// failPage serves an error.
func (h *Handler) failPage(w http.ResponseWriter, r *http.Request, status int, err error) {
	if status == http.StatusInternalServerError {
		h.opts.Logger.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "error", err)
	}
	h.send(w, r, status, &page{name: "error.html", Title: http.StatusText(status), Data: map[string]any{
		"Status": status, "Text": err.Error(), "SignIn": status == http.StatusUnauthorized,
	}})
}

// send writes a page.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, status int, p *page) {
	p.Judging = h.opts.Judge != nil
	_, p.Waiting = h.opts.Judge.first()
	names := assetNames()
	p.Script, p.Style, p.Icon = names["app.js"], names["app.css"], names["icon.svg"]
	if c, err := r.Cookie("art_dash_theme"); err == nil && (c.Value == "dark" || c.Value == "light") {
		p.Theme = c.Value
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, p.name, p); err != nil {
		h.opts.Logger.ErrorContext(r.Context(), "template failed", "name", p.name, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	sendBytes(w, r, status, b.Bytes())
}

// sendBytes writes a body, compressed where the client takes that. An error means that the client has gone.
func sendBytes(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < 1<<10 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := gzip.NewWriter(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

// file serves something that is no page, as a download.
func (h *Handler) file(make func(*http.Request) (name, text string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, text, err := make(r)
		if err != nil {
			h.failPage(w, r, statusOf(err), err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
		sendBytes(w, r, http.StatusOK, []byte(text))
	})
}

// post serves a form that changes something, and sends the browser to the address that the function returns.
func (h *Handler) post(change func(*http.Request) (to string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			h.failPage(w, r, http.StatusBadRequest, err)
			return
		}
		to, err := change(r)
		if err != nil {
			h.failPage(w, r, statusOf(err), err)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	})
}

// assetNames are the names of files, and what they are served as: with a hash of their content, so that browsers may
// keep them forever.
var assetNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"app.js", "app.css", "icon.svg"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(name)
		names[name] = strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
	}
	return names
})

// serveAsset serves the script, the style sheet and the icon. They hold nothing secret: the page that asks for a key
// has them too.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	for file, hashed := range assetNames() {
		if name != hashed {
			continue
		}
		content, _ := assets.ReadFile("assets/" + file) // it is embedded
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		sendBytes(w, r, http.StatusOK, content)
		return
	}
	http.NotFound(w, r)
}
