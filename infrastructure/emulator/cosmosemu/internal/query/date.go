package query

import "time"

// date is a time in ticks of 100 ns since the year 1.
type date int64

const (
	ticksPerMilli  = 10_000
	ticksPerSecond = 1000 * ticksPerMilli
	ticksPerDay    = 24 * 60 * 60 * ticksPerSecond

	epoch    = date(719_162 * ticksPerDay)     // 1970
	lastDate = date(3_652_059*ticksPerDay - 1) // the end of 9999
)

// dateLayouts are the accepted forms of ISO 8601. Each may have a fraction of the second.
var dateLayouts = []string{"2006-01-02T15:04:05Z", "2006-01-02T15:04:05", "2006-01-02T15:04Z", "2006-01-02T15:04", "2006-01-02"}

func parseDate(v Value) (date, bool) {
	if v.kind != String || len(v.raw) < len("2006-01-02") || len(v.raw) > 6*len("2006-01-02T15:04:05.0000000Z") {
		return 0, false
	}
	text := v.Text()
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 {
			return dateOf(t), true
		}
	}
	return 0, false
}

func dateOf(t time.Time) date {
	return epoch + date(t.Unix()*ticksPerSecond+int64(t.Nanosecond())/100)
}

func (d date) time() time.Time {
	since := int64(d - epoch)
	seconds := floorDiv(since, ticksPerSecond)
	return time.Unix(seconds, (since-seconds*ticksPerSecond)*100).UTC()
}

// value returns the text of a time; undefined if the time is out of range.
func (d date) value() Value {
	if d < 0 || d > lastDate {
		return Value{}
	}
	return textValue(d.time().Format("2006-01-02T15:04:05.0000000Z"))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// dateUnit is a part of a date.
type dateUnit uint8

const (
	years dateUnit = iota
	months
	days
	hours
	minutes
	seconds
	millis
	micros
	nanos
)

var unitNames = map[string]dateUnit{
	"year": years, "yyyy": years, "yy": years,
	"month": months, "mm": months, "m": months,
	"day": days, "dd": days, "d": days,
	"hour": hours, "hh": hours,
	"minute": minutes, "mi": minutes, "n": minutes,
	"second": seconds, "ss": seconds, "s": seconds,
	"millisecond": millis, "ms": millis,
	"microsecond": micros, "mcs": micros,
	"nanosecond": nanos, "ns": nanos,
}

// ticks returns the length of a unit; 0 for years and months, whose lengths vary, and for
// nanoseconds, which are shorter than a tick.
func (u dateUnit) ticks() int64 {
	return [...]int64{0, 0, ticksPerDay, ticksPerDay / 24, ticksPerDay / 24 / 60, ticksPerSecond, ticksPerMilli, ticksPerMilli / 1000, 0}[u]
}

// index returns the number of units since the year 1.
func (u dateUnit) index(d date) int64 {
	t := d.time()
	switch u {
	case years:
		return int64(t.Year())
	case months:
		return int64(t.Year())*12 + int64(t.Month())
	case nanos:
		return int64(d-epoch) * 100 // overflows more than 292 years before or after 1970
	default:
		return floorDiv(int64(d), u.ticks())
	}
}

// part returns the value of the unit within the next longer one. Units below the second count
// within the second.
func (u dateUnit) part(d date) int64 {
	t := d.time()
	switch u {
	case years:
		return int64(t.Year())
	case months:
		return int64(t.Month())
	case days:
		return int64(t.Day())
	case hours:
		return int64(t.Hour())
	case minutes:
		return int64(t.Minute())
	case seconds:
		return int64(t.Second())
	case millis:
		return int64(t.Nanosecond()) / 1e6
	case micros:
		return int64(t.Nanosecond()) / 1e3
	default:
		return int64(t.Nanosecond())
	}
}

// add moves a time by n units. If the resulting month does not have the day, its last day is
// used.
func (u dateUnit) add(d date, n int64) date {
	if limit := int64(lastDate); n > limit || n < -limit {
		return -1
	}
	switch u {
	case years, months:
		if u == years {
			n *= 12
		}
		if n > 12*10_000 || n < -12*10_000 {
			return -1
		}
		t := d.time()
		first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		if first.Year() < 1 {
			return -1
		}
		return dateOf(first) + date(int64(min(t.Day(), last)-1)*ticksPerDay) + d%ticksPerDay
	case nanos:
		return d + date(n/100)
	default:
		if limit := int64(lastDate) / u.ticks(); n > limit || n < -limit {
			return -1
		}
		return d + date(n*u.ticks())
	}
}
