package plot

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// TestLegend_Room: no text of a legend reaches the marker behind it, nor the edge, in a font that is a fifth wider too,
// as DejaVu Sans is: SVG is drawn in the fonts of its viewer.
func TestLegend_Room(t *testing.T) {
	const wider, width = 1.2, chartWidth - 2*margin
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("run-%d val/reward", i*i)
	}
	for _, names := range [][]string{
		nil, {""}, {"train/reward", "val/reward"}, many,
		{strings.Repeat("long-name-", 30), "b", strings.Repeat("W", 60) + "1", strings.Repeat("W", 60) + "2"},
	} {
		places, lines := placeLegend(names, width)
		for i, at := range places {
			end := at.X + thumbnail + thumbGap + wider*textWidth(fit(names[i], labelSize, width-thumbnail-thumbGap), labelSize)
			if end > width {
				t.Errorf("%q ends at %v of %v", names[i], end, vg.Length(width))
			}
			if i+1 < len(places) && places[i+1].Y == at.Y && places[i+1].X < end {
				t.Errorf("%q ends at %v, the next begins at %v", names[i], end, places[i+1].X)
			}
			if at.Y != 0 && i > 0 && places[i-1].Y > at.Y || at.Y > vg.Length(lines-1)*legendLine {
				t.Errorf("%q is at %v, of %d lines", names[i], at, lines)
			}
		}
		c := &Chart{}
		for _, name := range names {
			c.Series = append(c.Series, Series{Name: name, Points: []Point{{Step: 1, Value: 1}}})
		}
		if _, height := c.size(); height-legendHeight(lines) < chartHeight-legendHeight(2) {
			t.Errorf("%d lines leave %v of %v for the axes", lines, height-legendHeight(lines), height)
		}
	}
}

// TestFit_Ends: a text that is cut keeps both ends.
func TestFit_Ends(t *testing.T) {
	long := "first" + strings.Repeat("-middle", 20) + "-last"
	cut := fit(long, labelSize, 200)
	if !strings.HasPrefix(cut, "first-") || !strings.HasSuffix(cut, "-last") || !strings.Contains(cut, "…") ||
		reserve*textWidth(cut, labelSize) > 200 || reserve*textWidth(cut, labelSize) < 180 {
		t.Errorf("%q", cut)
	}
	if got := fit("short", labelSize, 200); got != "short" {
		t.Errorf("%q", got)
	}
	if got := wrap("player, step 100, val/reward "+long, labelSize, 100); strings.Count(got, "\n") < 2 ||
		!strings.HasPrefix(got, "player, step\n100,") || !strings.HasSuffix(got, "-last") {
		t.Errorf("%q", got)
	}
}

// TestStroke_Differs: up to 28 series look different.
func TestStroke_Differs(t *testing.T) {
	seen := map[string]int{}
	for i := range len(palette) * len(dashes) {
		key := fmt.Sprint(strokeOf(i))
		if other, ok := seen[key]; ok {
			t.Errorf("series %d is drawn as %d", i, other)
		}
		seen[key] = i
	}
}
