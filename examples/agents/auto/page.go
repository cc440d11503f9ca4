package auto

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
}).Parse(pageText))

// Size of the curve, in pixels.
const width, height = 640, 160

// Polyline are the points of the curve, in the coordinates of an image of 640 by 160.
func (r *Result) Polyline() string {
	last := 1
	for _, p := range r.Curve {
		last = max(last, p.Step)
	}
	var points []string
	for _, p := range r.Curve {
		points = append(points, fmt.Sprintf("%.1f,%.1f", float64(width*p.Step)/float64(last), height*(1-p.WinRate)))
	}
	return strings.Join(points, " ")
}
