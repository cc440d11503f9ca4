package dash

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of an address. The first that is invalid is the error.
type params struct {
	url.Values
	err error
}

// paramsOf reads the address. Characters that would not be seen are left out: parameters come back in forms.
func paramsOf(r *http.Request) *params {
	p := &params{Values: url.Values{}}
	for name, values := range r.URL.Query() {
		for _, v := range values {
			p.Add(name, strings.Map(func(r rune) rune {
				if isHidden(r) {
					return -1
				}
				return r
			}, strings.ToValidUTF8(v, "")))
		}
	}
	return p
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = badRequest(format, args...)
	}
}

// number returns a number that is not negative.
func (p *params) number(name string, fallback int) int {
	text := p.Get(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		p.fail("%s is %q, want a number of 0 or more", name, text)
		return fallback
	}
	return n
}

// float returns a finite number, or fallback, which may be infinite.
func (p *params) float(name string, fallback float64) float64 {
	text := strings.TrimSpace(p.Get(name))
	if text == "" {
		return fallback
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(v) {
		p.fail("%s is %q, want a number", name, text)
		return fallback
	}
	return v
}

// choice returns one of some values, the first by default.
func (p *params) choice(name string, of ...string) string {
	text := p.Get(name)
	if text == "" {
		return of[0]
	}
	if !slices.Contains(of, text) {
		p.fail("%s is %q, want one of %s", name, text, strings.Join(of, ", "))
		return of[0]
	}
	return text
}

// with returns the address of a page with these parameters, some of which are changed: name and value in turn.
func (p *params) with(path string, changes ...string) string {
	query := url.Values{}
	for key, values := range p.Values {
		query[key] = values
	}
	for i := 0; i+1 < len(changes); i += 2 {
		query.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			query.Del(changes[i])
		}
	}
	return localURL(path, query)
}
