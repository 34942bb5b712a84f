package query

// aggregateKind is an aggregate function; 0 means none.
type aggregateKind uint8

const (
	aggCount aggregateKind = iota + 1
	aggCountIf
	aggSum
	aggAvg
	aggMin
	aggMax
	aggMakeList
	aggMakeSet
)

var aggregateKinds = map[string]aggregateKind{
	"COUNT": aggCount, "COUNTIF": aggCountIf, "SUM": aggSum, "AVG": aggAvg, "MIN": aggMin, "MAX": aggMax,
	"MAKELIST": aggMakeList, "MAKESET": aggMakeSet,
}

// planNames are the names of the aggregates in a query plan.
var planNames = map[aggregateKind]string{
	aggCount: "Count", aggCountIf: "CountIf", aggSum: "Sum", aggAvg: "Average", aggMin: "Min", aggMax: "Max",
	aggMakeList: "MakeList", aggMakeSet: "MakeSet",
}

// String is the name of the function.
func (k aggregateKind) String() string {
	for name, kind := range aggregateKinds {
		if kind == k {
			return name
		}
	}
	return ""
}

// accumulator computes one aggregate. Undefined arguments are ignored. An argument of a wrong
// type makes the result undefined: SUM and AVG need numbers, MIN and MAX accept everything
// except arrays and objects. So does a list that is too long.
type accumulator struct {
	kind  aggregateKind
	n     int64
	sum   float64
	best  Value
	list  listBuilder
	seen  map[string]bool
	wrong bool
}

func (a *accumulator) add(v Value) {
	if v.kind == Undefined {
		return
	}
	switch a.kind {
	case aggCountIf:
		if v.kind == Boolean && v.truth {
			a.n++
		}
		return
	case aggSum, aggAvg:
		a.wrong = a.wrong || v.kind != Number
		a.sum += v.Float()
	case aggMin, aggMax:
		a.wrong = a.wrong || v.kind >= Array
		if c := compare(v, a.best); a.n == 0 || c < 0 && a.kind == aggMin || c > 0 && a.kind == aggMax {
			a.best = parsedNumber(v.clone())
		}
	case aggMakeList, aggMakeSet:
		a.collect(v)
	default:
	}
	a.n++
}

// collect adds a value to the list, which is undefined once it is too long.
func (a *accumulator) collect(v Value) {
	if a.wrong = a.wrong || len(a.list.b) > maxValue; a.wrong {
		a.list, a.seen = listBuilder{}, nil
		return
	}
	if a.kind == aggMakeSet {
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		key := string(appendCanonical(nil, v))
		if a.seen[key] {
			return
		}
		a.seen[key] = true
	}
	a.list.add(v)
}

// result returns the value. Without arguments it is 0 for COUNT and SUM, an empty list for
// MAKELIST and MAKESET, and undefined for AVG, MIN and MAX.
func (a *accumulator) result() Value {
	switch {
	case a.wrong:
		return Value{}
	case a.kind == aggSum:
		return floatValue(a.sum)
	case a.kind == aggAvg:
		return floatValue(a.sum / float64(a.n))
	case a.kind == aggMin, a.kind == aggMax:
		return a.best
	case a.kind == aggMakeList, a.kind == aggMakeSet:
		return a.list.value()
	default:
		return floatValue(float64(a.n))
	}
}
