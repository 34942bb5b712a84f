package changefeed

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func rng(lo, hi string) FeedRange { return FeedRange{Min: lo, Max: hi} }

func liveLease(lo, hi string) Lease {
	return Lease{ID: "p.." + lo + "-" + hi, Version: 1, Range: rng(lo, hi)}
}

func TestCompareKeysReadsShortBoundsAsPadded(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "00", 0},
		{"", "01", -1},
		{"1F", "1F0000", 0},
		{"1F", "1F0001", -1},
		{"20", "1FFF", 1},
		{"3FFFFFFF", "FF", -1},
		{"FF", "FF", 0},
		{"0A", "0AFF", -1},
	} {
		if got := compareKeys(tt.a, tt.b); got != tt.want {
			t.Errorf("compareKeys(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := compareKeys(tt.b, tt.a); got != -tt.want {
			t.Errorf("compareKeys(%q, %q) = %d, want %d", tt.b, tt.a, got, -tt.want)
		}
	}
}

func TestSubtract(t *testing.T) {
	for _, tt := range []struct {
		from  FeedRange
		holes []FeedRange
		want  []FeedRange
	}{
		{rng("", "FF"), nil, []FeedRange{rng("", "FF")}},
		{rng("", "FF"), []FeedRange{rng("", "FF")}, nil},
		{rng("", "FF"), []FeedRange{rng("1F", "2F"), rng("", "0F")}, []FeedRange{rng("0F", "1F"), rng("2F", "FF")}},
		{rng("10", "20"), []FeedRange{rng("", "FF")}, nil},
		{rng("10", "20"), []FeedRange{rng("00", "08"), rng("30", "FF")}, []FeedRange{rng("10", "20")}},
		{rng("10", "20"), []FeedRange{rng("10", "18"), rng("14", "1A")}, []FeedRange{rng("1A", "20")}},
	} {
		before := slices.Clone(tt.holes)
		if got := tt.from.subtract(tt.holes); !reflect.DeepEqual(got, tt.want) || !slices.Equal(tt.holes, before) {
			t.Errorf("%s less %v = %v, want %v; the holes are %v now", tt.from, before, got, tt.want, tt.holes)
		}
	}
}

func TestTilingFindsGapsAndReplayedParents(t *testing.T) {
	pending, split, done := liveLease("", "1F"), liveLease("1F", "FF"), liveLease("", "FF")
	pending.State, split.State, done.State = LeasePending, LeaseSplit, LeaseDone
	v0 := Lease{ID: "p..0", Version: 0, Token: "0", Range: rng("", "1F")}
	for _, tt := range []struct {
		name     string
		leases   []Lease
		gaps     string
		replaced string
	}{
		{"whole", []Lease{liveLease("", "FF")}, "[]", "map[]"},
		{"two", []Lease{liveLease("1F", "FF"), liveLease("", "1F")}, "[]", "map[]"},
		{"none", nil, "[-FF]", "map[]"},
		{"gap in the middle", []Lease{liveLease("", "0F"), liveLease("1F", "FF")}, "[0F-1F]", "map[]"},
		{"a pending lease covers nothing", []Lease{pending, liveLease("1F", "FF")}, "[-1F]", "map[]"},
		{"a done lease covers nothing", []Lease{done, liveLease("1F", "FF")}, "[-1F]", "map[]"},
		{"a split lease covers its children", []Lease{split, liveLease("", "1F")}, "[]", "map[]"},
		{"a parent beside all its children", []Lease{liveLease("", "FF"), liveLease("", "1F"), liveLease("1F", "FF")}, "[]", "map[p..-FF:[]]"},
		{"a parent beside one child", []Lease{liveLease("", "FF"), liveLease("", "1F")}, "[]", "map[p..-FF:[1F-FF]]"},
		{"a grandparent", []Lease{liveLease("", "FF"), liveLease("", "1F"), liveLease("", "0F"), liveLease("0F", "1F")}, "[]", "map[p..-1F:[] p..-FF:[1F-FF]]"},
		{"a physical-range lease beside its successor", []Lease{v0, liveLease("", "1F"), liveLease("1F", "FF")}, "[]", "map[p..0:[]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := inspectTiling([]FeedRange{FullRange()}, tt.leases)
			if fmt.Sprint(got.gaps) != tt.gaps || fmt.Sprint(got.replaced) != tt.replaced || len(got.overlaps) != 0 {
				t.Errorf("gaps %v, replaced %v, overlaps %v; want %s, %s", got.gaps, got.replaced, got.overlaps, tt.gaps, tt.replaced)
			}
		})
	}
	crossing := inspectTiling([]FeedRange{FullRange()}, []Lease{liveLease("", "1F"), liveLease("0F", "FF")})
	if len(crossing.overlaps) != 1 {
		t.Errorf("crossing leases: %+v", crossing)
	}
}

func TestCutFollowsPhysicalBounds(t *testing.T) {
	physical := []FeedRange{rng("20", "FF"), rng("", "10"), rng("10", "20")}
	if got, whole := cut(rng("08", "28"), physical); fmt.Sprint(got) != "[08-10 10-20 20-28]" || !whole {
		t.Errorf("cut: %v", got)
	}
	if tiles(rng("", "FF"), []FeedRange{rng("", "10"), rng("20", "FF")}) {
		t.Error("a gap tiles")
	}
	for name, parts := range map[string][]FeedRange{
		"an empty part":          {rng("", "10"), rng("10", "10"), rng("10", "FF")},
		"a part that leads back": {rng("", "20"), rng("20", "10"), rng("10", "FF")},
		"nothing":                nil,
	} {
		if tiles(rng("", "FF"), parts) {
			t.Errorf("%s tiles", name)
		}
	}
}
