package epk

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
)

// The vectors are the results of azure-cosmos 4.17.1 (Python).
func TestHashOfVersion1(t *testing.T) {
	for _, c := range []struct {
		key  Value
		want string
	}{
		{String(""), "05C1CF33970FF80800"},
		{String("shortstring"), "05C1D75949D7E80874697073757475736A6F6800"},
		{String("a"), "05C1D78593652C086200"},
		{String(strings.Repeat("a", 100)), "05C1EB5921F70608" + strings.Repeat("62", 100) + "00"},
		{String(strings.Repeat("a", 101)), "05C1EB5921F70608" + strings.Repeat("62", 100) + "00"},
		{String(strings.Repeat("ä", 60)), "05C1E14D8783DE08" + strings.Repeat("C4A5", 50) + "C4"},
		{String(strings.Repeat("ä", 101)), "05C1EDEF5B855E08" + strings.Repeat("C4A5", 50) + "C4"},
		{String("\x00\x7f"), "05C1E71B5B91C008018000"},
		{Null(), "05C1ED45D7475601"}, // Python omits the 01, @azure/cosmos 4.9.3 writes it
		{Undefined(), "05C1D529E345DC00"},
		{Bool(true), "05C1D7C5A903D803"},
		{Bool(false), "05C1DB857D857C02"},
		{Number(0), "05C1BF6DA11560058000"},
		{Number(1), "05C1ED172B6B2605BFF0"},
		{Number(-1), "05C1D1A5BDDF9C054010"},
		{Number(1.5), "05C1E9694167A805BFF8"},
		{Number(-1e300), "05C1EF29051DFC0501C90DF16F7FFD29C8"},
		{Number(1e300), "05C1AB5FCFAF8005FE37F30F918103D738"},
		{Number(4294967295), "05C1D7039DA9C405C1EFFFFFFFFE"},
		{Number(0.1), "05C1D92733D70405BFB9CD673399CD6734"},
	} {
		if got := Format(V1.Append(nil, Key{c.key})); got != c.want {
			t.Errorf("%.20v: %s; want %s", c.key, got, c.want)
		}
	}
}

// Strings that differ only after their first hundred UTF-16 units have the same effective
// partition key. A surrogate pair counts as two units.
func TestLongStringsOfVersion1(t *testing.T) {
	place := func(s string) string { return Format(V1.Append(nil, Key{String(s)})) }
	pairs := strings.Repeat("😀", 50)
	if place(pairs) != place(pairs+"b") || place(pairs[4:]+"bc") == place(pairs[4:]+"bd") {
		t.Error("a surrogate pair does not count two")
	}
	if n := len(V1.Append(nil, Key{String(pairs)})); n > MaxSize {
		t.Errorf("%d bytes", n)
	}
}

func TestDivideInVersion1(t *testing.T) {
	for n, want := range map[int]string{2: "05C1DFFFFFFFFC", 4: "05C1CFFFFFFFF8 05C1DFFFFFFFFC 05C1E7FFFFFFFE", 1: ""} {
		var got []string
		for _, r := range V1.Divide(n)[1:] {
			got = append(got, Format(r.Min))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: %s; want %s", n, got, want)
		}
	}
	five := V1.Divide(5)
	counts := make([]int, 5)
	for i := range 20_000 {
		key := V1.Append(nil, Key{String(strconv.Itoa(i))})
		for j, r := range five {
			if r.Contains(key) {
				counts[j]++
			}
		}
	}
	for j, n := range counts {
		if n < 3700 || n > 4300 {
			t.Errorf("range %d holds %d of 20000 keys", j, n)
		}
	}
}

func TestMiddleInVersion1(t *testing.T) {
	r := Full()
	for range 31 { // down to the width of one hash
		m := V1.Middle(r)
		if !r.Contains(m) || bytes.Equal(m, r.Min) {
			t.Fatalf("middle %s is outside [%s,%s)", Format(m), Format(r.Min), Format(r.Max))
		}
		if h := hashAt(m); h != math.Floor((hashAt(r.Min)+hashAt(r.Max))/2) {
			t.Fatalf("%s is the hash %g", Format(m), h)
		}
		r.Min = m
	}
	key := V1.Append(nil, Key{String("a")})
	if p := Point(key); !p.Contains(key) || p.Contains(V1.Append(nil, Key{String("b")})) {
		t.Errorf("the point of %s is %v", Format(key), p)
	}
}
