package playpage

import (
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/lab/playground"
)

func TestChart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	points := make([]playground.Point, 100)
	for i := range points {
		points[i] = playground.Point{P50: 10 * time.Millisecond, P99: time.Hour}
	}
	points[50] = playground.Point{} // a second without events
	fault := &playground.Faults[0]
	c := draw(points, []playground.Effect{
		{Number: 1, Fault: fault, Began: now.Add(-time.Hour), Ended: now.Add(-time.Hour + time.Second)},
		{Number: 2, Fault: fault, Began: now.Add(-50 * time.Second), Ended: now.Add(-40 * time.Second)},
		{Number: 3, Fault: fault, Began: now.Add(-10 * time.Second)},
	}, now)
	if len(c.Bands) != 2 || c.Bands[0].X != "50.00%" || c.Bands[0].Width != "10.00%" || c.Bands[1].Number != 3 || c.Bands[1].Width != "10.00%" {
		t.Errorf("bands %+v", c.Bands)
	}
	if half := string(c.Half); strings.Count(half, "M") != 2 || !strings.HasPrefix(half, "M0.0 83.33L") {
		t.Errorf("the curve is %s: want a gap, and 10 ms at its line", half)
	}
	if !strings.HasPrefix(string(c.Most), "M0.0 0.00L") {
		t.Errorf("values above the scale must be at the top, not %.20s", c.Most)
	}
	if len(c.Lines) != 4 || c.Lines[2] != (gridLine{"35.71%", "1s"}) {
		t.Errorf("lines %+v", c.Lines)
	}
}
