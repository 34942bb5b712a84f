package measure_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/tests/bench/measure"
)

type recorder struct {
	steps   []string
	figures []measure.Figure
}

func (r *recorder) Step(what string)        { r.steps = append(r.steps, what) }
func (r *recorder) Figure(f measure.Figure) { r.figures = append(r.figures, f) }

func TestGoals(t *testing.T) {
	rate := measure.Rate("updates", 850, "op/s").Over(1000)
	for _, c := range []struct {
		goal measure.Goal
		met  bool
		text string
	}{
		{measure.RatioAtLeast(0.85), true, ">= 0.85x"},
		{measure.RatioAtLeast(0.86), false, ">= 0.86x"},
		{measure.RatioAtMost(0.85), true, "<= 0.85x"},
		{measure.RatioAtMost(0.84), false, "<= 0.84x"},
		{measure.AtLeast(850), true, ">= 850"},
		{measure.AtMost(849), false, "<= 849"},
	} {
		if f := rate.Wants(c.goal); f.Met() != c.met || f.Goal.String() != c.text {
			t.Errorf("%v of %+v: met %v, written %q", c, rate, f.Met(), f.Goal)
		}
	}
	if !rate.Met() {
		t.Error("a figure without a goal misses nothing")
	}
}

func TestGrowthIsMeasuredAgainstTheSmallest(t *testing.T) {
	figures := measure.Growth("contacts", "µs", measure.Point{At: "1k", Cost: 10}, measure.Point{At: "10k", Cost: 12}, measure.Point{At: "100k", Cost: 16})
	if figures[0].Goal != nil || figures[0].Floor != 0 {
		t.Errorf("the smallest has a floor: %+v", figures[0])
	}
	if f := figures[1]; f.Ratio != 1.2 || !f.Met() {
		t.Errorf("%+v", f)
	}
	if f := figures[2]; f.Name != "contacts 100k" || f.Ratio != 1.6 || f.Met() {
		t.Errorf("1.6 times the cost at the smallest is within the line: %+v", f)
	}
}

func TestRunRefusesTwoFiguresOfOneName(t *testing.T) {
	var sink recorder
	run := measure.NewRun("api", &sink)
	run.Add(measure.Rate("a", 1, "op/s"), measure.Rate("a", 2, "op/s"), measure.Rate("b", math.NaN(), "op/s"))
	if len(sink.figures) != 1 || sink.figures[0].Stage != "api" {
		t.Errorf("figures: %+v", sink.figures)
	}
	if err := run.Err(); err == nil || !strings.Contains(err.Error(), "twice") || !strings.Contains(err.Error(), "not a number") {
		t.Errorf("the run says %v", err)
	}
}

func TestAlternateSwapsTheSidesAndAddsUp(t *testing.T) {
	var order []string
	side := func(name string, operations int64) measure.Turn {
		return func(context.Context) (measure.Sample, error) {
			order = append(order, name)
			return measure.Sample{Operations: operations, Elapsed: time.Second}, nil
		}
	}
	sums, err := measure.Alternate(t.Context(), 2, side("floor", 100), side("subject", 80))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"floor", "subject", "subject", "floor"}; !slices.Equal(order, want) {
		t.Errorf("turns %v, want %v", order, want)
	}
	if sums[0].Rate() != 100 || sums[1].Rate() != 80 || sums[1].Operations != 160 {
		t.Errorf("sums %+v", sums)
	}
	broken := errors.New("broken")
	if _, err := measure.Alternate(t.Context(), 1, func(context.Context) (measure.Sample, error) { return measure.Sample{}, broken }); !errors.Is(err, broken) {
		t.Errorf("the error of a turn is lost: %v", err)
	}
}

func TestOneDisturbedTurnDoesNotTell(t *testing.T) {
	var sum measure.Sample
	for _, stall := range []time.Duration{0, 0, 8 * time.Second, 0, 0} {
		sum = sum.Add(measure.Sample{Operations: 100, Elapsed: time.Second + stall, CPU: 100*time.Millisecond + stall})
	}
	if sum.Rate() != 100 || sum.PerOperation() != time.Millisecond {
		t.Errorf("%.1f a second, %v an operation", sum.Rate(), sum.PerOperation())
	}
	if sum.Operations != 500 || sum.Elapsed != 13*time.Second {
		t.Errorf("the sum is %+v", sum)
	}
	both := sum.Add(sum).Add(measure.Sample{Operations: 1, Elapsed: time.Second})
	if both.Rate() != 100 {
		t.Errorf("sums of sums: %.1f a second", both.Rate())
	}
}

// A machine that is slow in one round is slow for both sides of it.
func TestRatioIsTheMedianOverRounds(t *testing.T) {
	rounds := func(rates ...int64) (sum measure.Sample) {
		for _, rate := range rates {
			sum = sum.Add(measure.Sample{Operations: rate, Elapsed: time.Second})
		}
		return sum
	}
	f := measure.Rate("relay", 1, "1/s").OverRounds(rounds(90, 45, 80, 40, 85), rounds(100, 50, 100, 50, 100), rounds(200, 200, 200, 200, 200))
	if f.Ratio != 0.85 || f.Low != 0.8 || f.High != 0.9 || f.Floor != 100 {
		t.Errorf("ratio %v, %v to %v over %v; want 0.85, 0.8 to 0.9 over 100", f.Ratio, f.Low, f.High, f.Floor)
	}
	if f := measure.Rate("relay", 50, "1/s").OverRounds(rounds(50), rounds(200), rounds(100)); f.Ratio != 0.5 || f.Floor != 100 {
		t.Errorf("one round: %+v", f)
	}
}

func TestLoopRecordsEveryOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(d time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		s, err := measure.Loop(t.Context(), time.Second, work(10*time.Millisecond), work(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if s.Operations != 110 || s.Elapsed != time.Second || s.Rate() != 110 {
			t.Errorf("%+v", s)
		}
		if p50, p99 := s.Latency(50), s.Latency(99); p50.Round(time.Millisecond) != 10*time.Millisecond || p99.Round(time.Millisecond) != 100*time.Millisecond {
			t.Errorf("p50 %v, p99 %v", p50, p99)
		}
	})
}

func TestLoopEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	_, err := measure.Loop(t.Context(), time.Hour,
		func(context.Context) error { return broken },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, broken) {
		t.Errorf("the loop ended with %v", err)
	}
}
