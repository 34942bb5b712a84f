package sqlfilter

import (
	"cmp"
	"strings"
	"time"
)

// comparison compares two operands. It is unknown for absent operands and different types.
type comparison struct {
	operator    string
	left, right operand
}

func (c comparison) holds(f *Fields) truth {
	left, right := c.left.value(f), c.right.value(f)
	switch c.operator {
	case "=":
		return compareEqual(left, right)
	case "<>", "!=":
		return not(compareEqual(left, right))
	}
	order, ok := compareOrder(left, right)
	if !ok {
		return unknown
	}
	switch c.operator {
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	default:
		return truthOf(order >= 0)
	}
}

func compareEqual(left, right any) truth {
	if u, ok := left.(UUID); ok {
		return equalUUID(u, right)
	}
	if u, ok := right.(UUID); ok {
		return equalUUID(u, left)
	}
	if l, ok := left.(bool); ok {
		if r, ok := right.(bool); ok {
			return truthOf(l == r)
		}
		return unknown
	}
	order, ok := compareOrder(left, right)
	if !ok {
		return unknown
	}
	return truthOf(order == 0)
}

// equalUUID compares a UUID with another one or with its text.
func equalUUID(u UUID, other any) truth {
	switch o := other.(type) {
	case UUID:
		return truthOf(u == o)
	case string:
		return truthOf(strings.EqualFold(u.String(), o))
	}
	return unknown
}

func compareOrder(left, right any) (order int, ok bool) {
	switch l := left.(type) {
	case string:
		if r, ok := right.(string); ok {
			return strings.Compare(l, r), true
		}
	case time.Time:
		if r, ok := right.(time.Time); ok {
			return l.Compare(r), true
		}
	case int64:
		switch r := right.(type) {
		case int64:
			return cmp.Compare(l, r), true
		case float64:
			return cmp.Compare(float64(l), r), true
		}
	case float64:
		switch r := right.(type) {
		case int64:
			return cmp.Compare(l, float64(r)), true
		case float64:
			return cmp.Compare(l, r), true
		}
	}
	return 0, false
}

// normal converts a value to one of the types that are compared: string, bool, int64, float64,
// time.Time. Any other value is returned unchanged and equals nothing.
func normal(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int8:
		return int64(n)
	case int16:
		return int64(n)
	case int32:
		return int64(n)
	case uint:
		return normal(uint64(n))
	case uint8:
		return int64(n)
	case uint16:
		return int64(n)
	case uint32:
		return int64(n)
	case uint64:
		if n > 1<<63-1 {
			return float64(n)
		}
		return int64(n)
	case float32:
		return float64(n)
	}
	return v
}
