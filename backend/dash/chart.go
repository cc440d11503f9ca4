package dash

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/quantity"
)

// extent is the width and the height of the area of a chart, in the units of its paths. The browser stretches it.
const extent = 1000

// chart is what is to be drawn.
type chart struct {
	Title  string
	CSV    string // address of the file of all values; "" for none
	X      xAxis
	Log    bool // the vertical axis is logarithmic: values that are not above 0 are left out
	LogX   bool // the horizontal axis is logarithmic: what is at 0 of it, as step 0, is left out
	Area   bool // fill between Low and High, in place of lines
	Named  bool // the legend names a single series too
	Series []series
	Note   string
}

// axes are how a page draws its charts, as its form says.
type axes struct {
	X         string  // see [xAxis]
	Smooth    float64 // weight of the past, see [smooth]
	Log, LogX bool
}

func axesOf(p *params) axes {
	return axes{X: p.choice("x", string(xStep), string(xTime), string(xTokens)),
		Smooth: min(max(p.float("smooth", 0.6), 0), 0.99), Log: p.Get("log") != "", LogX: p.Get("logx") != ""}
}

// chart is one without series.
func (a *axes) chart(title string) *chart {
	return &chart{Title: title, X: xAxis(a.X), Log: a.Log, LogX: a.LogX}
}

// trend has the smoothed points with the points themselves behind, where there are enough of them.
func (a *axes) trend(s series) series {
	if a.Smooth > 0 && len(s.Points) >= 12 {
		s.Faint, s.Points = s.Points, smooth(s.Points, a.Smooth)
	}
	return s
}

// series is a line of a chart.
type series struct {
	Name   string
	Link   string // of the name in the legend; "" for none
	Points []point
	Faint  []point // drawn behind: the values of which Points are the trend
	Dots   bool    // mark each point: few measurements
}

// point is a value with a band around it; Low and High are NaN where there is none.
type point struct{ X, Y, Low, High float64 }

// at returns a point without a band.
func at(x, y float64) point { return point{x, y, math.NaN(), math.NaN()} }

// chartView is a chart with its numbers as texts, for the template.
type chartView struct {
	Title, CSV, Note, Data string
	Label                  string // describes the chart to those who do not see it
	XName                  string // of the horizontal axis
	Empty, Legend, Area    bool
	XTicks, YTicks         []tick
	Series                 []seriesView
	Table                  table
}

// seriesView is a series as paths.
type seriesView struct {
	Name, Link, Class, Line, Faint, Band, Last string
	Dots                                       [][2]string // percent of width and height
}

// tick is a place on an axis, in percent, and its text.
type tick struct{ At, Text string }

// table is the table under a chart.
type table struct {
	Head []string
	Rows [][]string
	More int // rows that are left out
}

// view computes what the template needs.
func (c *chart) view() *chartView {
	v := &chartView{Title: c.Title, CSV: c.CSV, Note: c.Note, XName: c.X.name(), Legend: c.Named || len(c.Series) > 1,
		Area: c.Area}
	left, leftX := c.drop()
	if left > 0 {
		v.Note = strings.TrimSpace(fmt.Sprintf("%s Left out, since a logarithmic axis cannot show them: %s.", v.Note,
			quantity.Of(left, "value")))
	}
	if leftX > 0 {
		v.Note = strings.TrimSpace(fmt.Sprintf("%s What is at %s %s is left out: a logarithmic axis has no place for it.",
			v.Note, c.X.name(), c.X.text(0)))
	}
	x, y, ok := c.ranges()
	v.Table = c.table()
	v.Label = c.Title + " by " + c.X.name()
	for _, s := range c.Series {
		if n := len(s.Points); n > 0 {
			first, last := s.Points[0], s.Points[n-1]
			v.Label += fmt.Sprintf("; %s: %s at %s, %s at %s", s.Name, number(c.value(first)), c.X.text(first.X),
				number(c.value(last)), c.X.text(last.X))
		}
	}
	if v.Empty = !ok; v.Empty {
		return v
	}
	v.XTicks, v.YTicks = x.ticks(5), y.ticks(4)
	for i, s := range c.Series {
		sv := seriesView{Name: s.Name, Link: s.Link, Class: seriesClass(i), Faint: polyline(s.Faint, x, y),
			Band: band(s.Points, x, y)}
		if !c.Area {
			sv.Line = polyline(s.Points, x, y)
		}
		if n := len(s.Points); n > 0 {
			sv.Last = number(c.value(s.Points[n-1]))
		}
		if s.Dots || len(s.Points) == 1 {
			for _, p := range s.Points {
				sv.Dots = append(sv.Dots, [2]string{percent(x.place(p.X)), percent(1 - y.place(p.Y))})
			}
		}
		v.Series = append(v.Series, sv)
	}
	v.Data = c.data(x)
	return v
}

// value is the value at a point: where values lie on top of one another, the height of its area.
func (c *chart) value(p point) float64 {
	if c.Area {
		return p.High - p.Low
	}
	return p.Y
}

// drop leaves out what cannot be drawn, and counts what a logarithmic axis has no place for: because of its value, and
// because of where it is.
func (c *chart) drop() (left, leftX int) {
	for i := range c.Series {
		s := &c.Series[i]
		for _, list := range []*[]point{&s.Points, &s.Faint} {
			kept := make([]point, 0, len(*list))
			for _, p := range *list {
				switch {
				case !finite(p.X) || !finite(p.Y):
				case c.LogX && p.X <= 0:
					leftX++
				case c.Log && p.Y <= 0:
					left++
				default:
					kept = append(kept, p)
				}
			}
			*list = thin(kept, c.LogX)
		}
	}
	return left, leftX
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// maxPoints bounds the points of a line: more than the columns of most screens show nothing else.
const maxPoints = 400

// thin keeps the lowest and the highest value of each of maxPoints/2 parts of a line: parts of as many points, or on a
// logarithmic axis of the same width, so that the few points of the first steps stay.
func thin(points []point, logX bool) []point {
	if len(points) <= maxPoints {
		return points
	}
	var out []point
	for b := range maxPoints / 2 {
		part := points[b*len(points)/(maxPoints/2) : (b+1)*len(points)/(maxPoints/2)]
		if logX {
			part = points[ofWidth(points, b):ofWidth(points, b+1)]
		}
		if len(part) == 0 {
			continue
		}
		low, high := 0, 0
		for i, p := range part {
			if p.Y < part[low].Y {
				low = i
			}
			if p.Y > part[high].Y {
				high = i
			}
		}
		if low > high {
			low, high = high, low
		}
		out = append(out, part[low])
		if high != low {
			out = append(out, part[high])
		}
	}
	return out
}

// ofWidth returns the index of the first point of a part of a line on a logarithmic axis.
func ofWidth(points []point, part int) int {
	a := axis{low: points[0].X, high: points[len(points)-1].X, log: true}
	i, _ := slices.BinarySearchFunc(points, float64(part)/(maxPoints/2), func(p point, place float64) int {
		return cmp.Compare(a.place(p.X), place)
	})
	if part == maxPoints/2 {
		return len(points)
	}
	return i
}

// ranges returns the axes that hold all points; ok is false when there is none.
func (c *chart) ranges() (x, y axis, ok bool) {
	x = axis{low: math.Inf(1), high: math.Inf(-1), kind: c.X, log: c.LogX}
	y = axis{low: math.Inf(1), high: math.Inf(-1), log: c.Log}
	for _, s := range c.Series {
		for _, list := range [][]point{s.Points, s.Faint} {
			for _, p := range list {
				x.add(p.X)
				y.add(p.Y)
				y.add(p.Low)
				y.add(p.High)
			}
		}
	}
	if x.low > x.high {
		return x, y, false
	}
	x.widen(false)
	y.widen(true)
	return x, y, true
}

// polyline is a line through points.
func polyline(points []point, x, y axis) string {
	var b strings.Builder
	for i, p := range points {
		b.WriteByte("LM"[bit(i == 0)])
		writePlace(&b, x.place(p.X), y.place(p.Y))
	}
	return b.String()
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// band is the area between the bounds of points, "" without any.
func band(points []point, x, y axis) string {
	var there, back strings.Builder
	for i, p := range points {
		if !finite(p.Low) || !finite(p.High) {
			continue
		}
		there.WriteByte("LM"[bit(there.Len() == 0)])
		writePlace(&there, x.place(p.X), y.place(p.High))
		q := points[len(points)-1-i]
		if finite(q.Low) && finite(q.High) {
			back.WriteByte('L')
			writePlace(&back, x.place(q.X), y.place(q.Low))
		}
	}
	if there.Len() == 0 {
		return ""
	}
	return there.String() + back.String() + "Z"
}

// writePlace writes a point of a path; both are from 0 to 1.
func writePlace(b *strings.Builder, x, y float64) {
	b.WriteString(strconv.FormatFloat(x*extent, 'f', 1, 64))
	b.WriteByte(' ')
	b.WriteString(strconv.FormatFloat((1-y)*extent, 'f', 1, 64))
}

// percent is a part of a whole as an attribute of SVG.
func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 2, 64) + "%" }

// data are the points for readings under the pointer, as JSON.
func (c *chart) data(x axis) string {
	type line struct {
		Name string    `json:"n"`
		At   []float64 `json:"p"` // from 0 to 1
		X    []string  `json:"x"`
		Y    []float64 `json:"y"`
	}
	var lines []line
	for _, s := range c.Series {
		l := line{Name: s.Name}
		for _, p := range s.Points {
			l.At = append(l.At, math.Round(x.place(p.X)*1e4)/1e4)
			l.X, l.Y = append(l.X, c.X.reading(p.X)), append(l.Y, rounded(c.value(p), 6))
		}
		lines = append(lines, l)
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return "[]" // drop has left out what has no JSON
	}
	return string(data)
}

// cell is a point as a text, with its band where there is one.
func (c *chart) cell(p point) string {
	if c.Area || !finite(p.Low) || !finite(p.High) {
		return number(c.value(p))
	}
	return fmt.Sprintf("%s (%s to %s)", number(p.Y), number(p.Low), number(p.High))
}

// maxRows bounds the rows of the table under a chart: the newest.
const maxRows = 60

// table has a row for each place on the horizontal axis, the last one first.
func (c *chart) table() table {
	t := table{Head: []string{c.X.name()}}
	rows := map[float64][]string{}
	var places []float64
	for i, s := range c.Series {
		t.Head = append(t.Head, s.Name)
		points := s.Points
		if len(s.Faint) > 0 {
			points = s.Faint // the values themselves
		}
		for _, p := range points {
			if rows[p.X] == nil {
				rows[p.X] = make([]string, len(c.Series))
				places = append(places, p.X)
			}
			rows[p.X][i] = c.cell(p)
		}
	}
	slices.Sort(places)
	slices.Reverse(places)
	t.More = max(0, len(places)-maxRows)
	for _, x := range places[:min(len(places), maxRows)] {
		t.Rows = append(t.Rows, append([]string{c.X.text(x)}, rows[x]...))
	}
	return t
}
