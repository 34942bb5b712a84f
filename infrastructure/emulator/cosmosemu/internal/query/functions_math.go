package query

import "math"

// mathFunctions compute with 64-bit floats. The result is undefined if it or an argument is
// not a number.
var mathFunctions = map[string]function{
	"ABS":     math1(math.Abs),
	"ACOS":    math1(math.Acos),
	"ASIN":    math1(math.Asin),
	"ATAN":    math1(math.Atan),
	"ATN2":    math2(math.Atan2),
	"CEILING": math1(math.Ceil),
	"COS":     math1(math.Cos),
	"COT":     math1(func(x float64) float64 { return 1 / math.Tan(x) }),
	"DEGREES": math1(func(x float64) float64 { return x * (180 / math.Pi) }),
	"EXP":     math1(math.Exp),
	"FLOOR":   math1(math.Floor),
	"LOG": {min: 1, max: 2, apply: func(a []Value) Value {
		x, ok := floats(a)
		switch {
		case !ok:
			return Value{}
		case len(x) == 2:
			return floatValue(math.Log(x[0]) / math.Log(x[1]))
		}
		return floatValue(math.Log(x[0]))
	}},
	"LOG10":   math1(math.Log10),
	"PI":      {apply: func([]Value) Value { return floatValue(math.Pi) }},
	"POWER":   math2(math.Pow),
	"RAND":    {apply: func([]Value) Value { return Value{} }}, // see compiler.random
	"RADIANS": math1(func(x float64) float64 { return x * math.Pi / 180 }),
	"ROUND": {min: 1, max: 2, apply: func(a []Value) Value {
		x, ok := floats(a)
		if !ok {
			return Value{}
		}
		if len(x) == 1 {
			return floatValue(math.Round(x[0]))
		}
		digits, ok := a[1].integer()
		if !ok || digits < 0 || digits > 15 {
			return Value{}
		}
		scale := math.Pow10(int(digits))
		return floatValue(math.Round(x[0]*scale) / scale)
	}},
	"SIGN": math1(func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	}),
	"SIN":    math1(math.Sin),
	"SQRT":   math1(math.Sqrt),
	"SQUARE": math1(func(x float64) float64 { return x * x }),
	"TAN":    math1(math.Tan),
	"TRUNC":  math1(math.Trunc),
}

func math1(f func(float64) float64) function {
	return function{min: 1, max: 1, apply: func(a []Value) Value {
		if a[0].kind != Number {
			return Value{}
		}
		return floatValue(f(a[0].Float()))
	}}
}

func math2(f func(x, y float64) float64) function {
	return function{min: 2, max: 2, apply: func(a []Value) Value {
		if a[0].kind != Number || a[1].kind != Number {
			return Value{}
		}
		return floatValue(f(a[0].Float(), a[1].Float()))
	}}
}

// floats returns all arguments as numbers.
func floats(args []Value) ([]float64, bool) {
	list := make([]float64, len(args))
	for i, a := range args {
		if a.kind != Number {
			return nil, false
		}
		list[i] = a.Float()
	}
	return list, true
}
