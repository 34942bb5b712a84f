package playpage

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"feedbox/infrastructure/lab/playground"
)

// chart shows the latency of the last minutes on a logarithmic scale, with marks for faults.
type chart struct {
	Half, Most template.HTML // paths of p50 and p99, in a view box of 1000 by 100
	Bands      []band
	Lines      []gridLine
}

// band is the period of a fault, in percent of the width.
type band struct {
	X, Width string
	Label    string // percent
	LabelY   int    // varies, so that the numbers of adjacent faults do not overlap
	Number   int
	Title    string
}

// gridLine is a round latency, in percent of the height.
type gridLine struct{ Y, Label string }

// The ends of the scale, as powers of ten milliseconds.
const (
	lowest  = 0.3 // 2 ms
	highest = 4.5 // 30 s
)

// height returns the position of a latency, 0 at the top, 100 at the bottom.
func height(d time.Duration) float64 {
	power := math.Log10(max(1, float64(d)/float64(time.Millisecond)))
	return 100 - 100*(min(highest, max(lowest, power))-lowest)/(highest-lowest)
}

// draw returns the chart of points that are one second apart and end now.
func draw(points []playground.Point, effects []playground.Effect, now time.Time) chart {
	c := chart{
		Half: curve(points, func(p playground.Point) time.Duration { return p.P50 }),
		Most: curve(points, func(p playground.Point) time.Duration { return p.P99 }),
	}
	for d := 10 * time.Millisecond; d <= 10*time.Second; d *= 10 {
		c.Lines = append(c.Lines, gridLine{percent(height(d)), d.String()})
	}
	span := time.Duration(len(points)) * time.Second
	place := func(t time.Time) float64 { return min(100, max(0, 100-100*float64(now.Sub(t))/float64(span))) }
	for i := range effects {
		e := &effects[i]
		ended := e.Ended
		if ended.IsZero() {
			ended = now
		}
		if now.Sub(ended) > span {
			continue
		}
		from, to := place(e.Began), place(ended)
		c.Bands = append(c.Bands, band{percent(from), percent(max(0.4, to-from)), percent(min(98, from+0.3)), 12 + 13*(e.Number%4), e.Number, e.Fault.Title})
	}
	return c
}

func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

// curve returns the path of a line, with gaps for seconds without events.
func curve(points []playground.Point, of func(playground.Point) time.Duration) template.HTML {
	var path strings.Builder
	pen := "M"
	for i, p := range points {
		d := of(p)
		if d == 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.2f", pen, 1000*float64(i)/float64(max(1, len(points)-1)), height(d))
		pen = "L"
	}
	return template.HTML(path.String()) //nolint:gosec // numbers only
}
