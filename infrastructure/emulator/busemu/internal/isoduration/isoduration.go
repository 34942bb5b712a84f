// Package isoduration reads and writes ISO 8601 durations in the service's form.
package isoduration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Forever is the longest time.Duration. It represents every unlimited time span.
const Forever = time.Duration(math.MaxInt64)

// MaxTimeSpan is .NET's TimeSpan.MaxValue, the service's form of Forever.
const MaxTimeSpan = "P10675199DT2H48M5.4775807S"

// Format returns an ISO 8601 duration in the service's form: days, hours, minutes and seconds,
// without zero parts.
func Format(d time.Duration) string {
	if d == Forever {
		return MaxTimeSpan
	}
	if d == 0 {
		return "PT0S"
	}
	var b strings.Builder
	b.WriteByte('P')
	if days := int64(d / (24 * time.Hour)); days > 0 {
		fmt.Fprintf(&b, "%dD", days)
		d %= 24 * time.Hour
	}
	if d > 0 {
		b.WriteByte('T')
	}
	if h := int64(d / time.Hour); h > 0 {
		fmt.Fprintf(&b, "%dH", h)
		d %= time.Hour
	}
	if m := int64(d / time.Minute); m > 0 {
		fmt.Fprintf(&b, "%dM", m)
		d %= time.Minute
	}
	if d > 0 {
		b.WriteString(strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S")
	}
	return b.String()
}

// Parse reads an ISO 8601 duration of days, hours, minutes and seconds. A duration too long
// for time.Duration is Forever. Years and months are refused, because they have no fixed
// length.
func Parse(s string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return 0, fmt.Errorf("%q is not an ISO 8601 duration", s)
	}
	units := map[byte]time.Duration{'W': 7 * 24 * time.Hour, 'D': 24 * time.Hour}
	total := 0.0
	for rest != "" {
		if rest[0] == 'T' {
			units = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}
			rest = rest[1:]
			if rest == "" {
				return 0, fmt.Errorf("%q is not an ISO 8601 duration", s)
			}
			continue
		}
		n := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if n <= 0 {
			return 0, fmt.Errorf("%q is not an ISO 8601 duration", s)
		}
		unit, ok := units[rest[n]]
		v, err := strconv.ParseFloat(rest[:n], 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("%q is not an ISO 8601 duration of days, hours, minutes and seconds", s)
		}
		total += v * float64(unit)
		rest = rest[n+1:]
	}
	if total >= math.MaxInt64 {
		return Forever, nil
	}
	return time.Duration(math.Round(total)), nil
}
