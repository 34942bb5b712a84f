package query

import (
	"strings"
	"time"
)

// dateFunctions work on UTC times as ISO 8601 text with a resolution of 100 ns. Other text
// and times before year 1 or after 9999 make the result undefined.
var dateFunctions = map[string]function{
	"DATETIMEADD": {min: 3, max: 3, apply: func(a []Value) Value {
		unit, n, at, ok := dateArgs(a[0], a[1], a[2])
		if !ok {
			return Value{}
		}
		return unit.add(at, n).value()
	}},
	"DATETIMEBIN":  {min: 2, max: 4, apply: dateBin},
	"DATETIMEDIFF": {min: 3, max: 3, apply: dateDiff},
	"DATETIMEPART": {min: 2, max: 2, apply: func(a []Value) Value {
		unit, _, at, ok := dateArgs(a[0], floatValue(0), a[1])
		if !ok {
			return Value{}
		}
		return intValue(unit.part(at))
	}},
	"DATETIMEFROMPARTS": {min: 3, max: 7, apply: dateFromParts},
	"DATETIMETOTICKS": {min: 1, max: 1, apply: func(a []Value) Value {
		at, ok := parseDate(a[0])
		if !ok {
			return Value{}
		}
		return intValue(int64(at - epoch))
	}},
	"DATETIMETOTIMESTAMP": {min: 1, max: 1, apply: func(a []Value) Value {
		at, ok := parseDate(a[0])
		if !ok {
			return Value{}
		}
		return intValue(floorDiv(int64(at-epoch), ticksPerMilli))
	}},
	"TICKSTODATETIME":     fromEpoch(1),
	"TIMESTAMPTODATETIME": fromEpoch(ticksPerMilli),

	"GETCURRENTDATETIME":        {now: currentDate},
	"GETCURRENTDATETIMESTATIC":  {now: currentDate},
	"GETCURRENTTICKS":           {now: currentTicks},
	"GETCURRENTTICKSSTATIC":     {now: currentTicks},
	"GETCURRENTTIMESTAMP":       {now: currentTimestamp},
	"GETCURRENTTIMESTAMPSTATIC": {now: currentTimestamp},
}

func currentDate(now time.Time) Value      { return dateOf(now).value() }
func currentTicks(now time.Time) Value     { return intValue(int64(dateOf(now) - epoch)) }
func currentTimestamp(now time.Time) Value { return intValue(now.UnixMilli()) }

// fromEpoch converts a number of units since 1970 to a time.
func fromEpoch(unit int64) function {
	return function{min: 1, max: 1, apply: func(a []Value) Value {
		n, ok := a[0].int64()
		if !ok || n > int64(lastDate)/unit || n < -int64(lastDate)/unit {
			return Value{}
		}
		return (epoch + date(n*unit)).value()
	}}
}

// dateArgs reads the three kinds of arguments.
func dateArgs(unit, number, at Value) (u dateUnit, n int64, d date, ok bool) {
	u, ok1 := unitNames[strings.ToLower(unit.Text())]
	n, ok2 := number.int64()
	d, ok3 := parseDate(at)
	return u, n, d, ok1 && ok2 && ok3
}

// dateDiff returns the number of changes of the part between two times.
func dateDiff(a []Value) Value {
	unit, _, from, ok := dateArgs(a[0], floatValue(0), a[1])
	to, ok2 := parseDate(a[2])
	if !ok || !ok2 {
		return Value{}
	}
	return intValue(unit.index(to) - unit.index(from))
}

// dateBin rounds a time down to the start of its bin. Bins are days or shorter.
func dateBin(a []Value) Value {
	size, start := int64(1), epoch
	ok := true
	if len(a) > 2 {
		size, ok = a[2].int64()
	}
	if len(a) > 3 && ok {
		start, ok = parseDate(a[3])
	}
	unit, _, at, valid := dateArgs(a[1], floatValue(0), a[0])
	if !ok || !valid || size < 1 || unit.ticks() == 0 || size > int64(lastDate)/unit.ticks() {
		return Value{}
	}
	width := size * unit.ticks()
	return (start + date(floorDiv(int64(at-start), width)*width)).value()
}

// dateFromParts builds a time from year, month, day, hour, minute, second and the fraction of
// the second in units of 100 ns.
func dateFromParts(a []Value) Value {
	parts := [7]int64{}
	for i, v := range a {
		n, ok := v.int64()
		if !ok || n < 0 || n > ticksPerSecond {
			return Value{}
		}
		parts[i] = n
	}
	p := [7]int{}
	for i, n := range parts {
		p[i] = int(n)
	}
	t := time.Date(p[0], time.Month(p[1]), p[2], p[3], p[4], p[5], p[6]*100, time.UTC)
	same := t.Year() == p[0] && int(t.Month()) == p[1] && t.Day() == p[2] && t.Hour() == p[3] && t.Minute() == p[4] && t.Second() == p[5]
	if !same {
		return Value{} // the date does not exist, such as 30 February
	}
	return dateOf(t).value()
}
