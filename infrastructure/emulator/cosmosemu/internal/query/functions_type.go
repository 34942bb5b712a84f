package query

// typeFunctions test the type of a value. They are true or false, never undefined.
var typeFunctions = map[string]function{
	"IS_ARRAY":   is(func(v Value) bool { return v.kind == Array }),
	"IS_BOOL":    is(func(v Value) bool { return v.kind == Boolean }),
	"IS_DEFINED": is(func(v Value) bool { return v.kind != Undefined }),
	"IS_FINITE_NUMBER": is(func(v Value) bool {
		return v.kind == Number && v.Float()-v.Float() == 0
	}),
	"IS_INTEGER": is(func(v Value) bool {
		_, ok := v.integer()
		return ok
	}),
	"IS_NULL":   is(func(v Value) bool { return v.kind == Null }),
	"IS_NUMBER": is(func(v Value) bool { return v.kind == Number }),
	"IS_OBJECT": is(func(v Value) bool { return v.kind == Object }),
	"IS_PRIMITIVE": is(func(v Value) bool {
		return v.kind != Undefined && v.kind < Array
	}),
	"IS_STRING": is(func(v Value) bool { return v.kind == String }),
	"IIF": {min: 3, max: 3, lenient: true, apply: func(a []Value) Value {
		if a[0].kind == Boolean && a[0].truth {
			return a[1]
		}
		return a[2]
	}},
}

func is(test func(Value) bool) function {
	return function{min: 1, max: 1, lenient: true, apply: func(a []Value) Value { return boolValue(test(a[0])) }}
}
