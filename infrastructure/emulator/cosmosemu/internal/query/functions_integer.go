package query

import (
	"math"
	"strconv"
)

// integerFunctions compute with 64-bit integers and wrap around on overflow. Another argument
// makes the result undefined.
var integerFunctions = map[string]function{
	"INTADD":    int2(func(x, y int64) (int64, bool) { return x + y, true }),
	"INTSUB":    int2(func(x, y int64) (int64, bool) { return x - y, true }),
	"INTMUL":    int2(func(x, y int64) (int64, bool) { return x * y, true }),
	"INTBITAND": int2(func(x, y int64) (int64, bool) { return x & y, true }),
	"INTBITOR":  int2(func(x, y int64) (int64, bool) { return x | y, true }),
	"INTBITXOR": int2(func(x, y int64) (int64, bool) { return x ^ y, true }),
	"INTDIV": int2(func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		return x / y, true
	}),
	"INTMOD": int2(func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		return x % y, true
	}),
	"INTBITLEFTSHIFT":  int2(func(x, y int64) (int64, bool) { return x << (y & 63), true }),
	"INTBITRIGHTSHIFT": int2(func(x, y int64) (int64, bool) { return x >> (y & 63), true }),
	"INTBITNOT": {min: 1, max: 1, apply: func(a []Value) Value {
		x, ok := a[0].int64()
		if !ok {
			return Value{}
		}
		return intValue(^x)
	}},
	// NUMBERBIN rounds down to a multiple of the bin size.
	"NUMBERBIN": {min: 1, max: 2, apply: func(a []Value) Value {
		x, ok := floats(a)
		switch {
		case !ok:
			return Value{}
		case len(x) == 1:
			return floatValue(math.Floor(x[0]))
		case x[1] == 0:
			return Value{}
		}
		return floatValue(math.Floor(x[0]/x[1]) * x[1])
	}},
}

func int2(f func(x, y int64) (int64, bool)) function {
	return function{min: 2, max: 2, apply: func(a []Value) Value {
		x, ok1 := a[0].int64()
		y, ok2 := a[1].int64()
		if !ok1 || !ok2 {
			return Value{}
		}
		n, ok := f(x, y)
		if !ok {
			return Value{}
		}
		return intValue(n)
	}}
}

// int64 returns a whole Number with all its digits, which may not fit in a float.
func (v Value) int64() (int64, bool) {
	if v.kind == Number && v.raw != nil {
		if n, err := strconv.ParseInt(string(v.raw), 10, 64); err == nil {
			return n, true
		}
	}
	return v.integer()
}

// intValue returns a Number with all digits of n.
func intValue(n int64) Value { return numberValue(strconv.FormatInt(n, 10)) }
