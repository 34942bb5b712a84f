package epk

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"feedbox/tests/fuzzseed"
)

// The vectors are the service's baseline, which azcosmos contains in internal/epk/testdata. They
// are hashes before the top bits are cleared.
func TestHashFollowsTheServiceBaseline(t *testing.T) {
	for _, c := range []struct {
		key  Key
		want string
	}{
		{Key{Undefined()}, "51622DAA78F835834610ABE56EFF5CB5"},
		{Key{Null()}, "778867E4430E67857ACE5C908374FE16"},
		{Key{Bool(true)}, "4E711127C5B5A8E4726AC6DD306A3E59"},
		{Key{Bool(false)}, "EFE1BE91E90A3439635E0E9E37361EF2"},
		{Key{Number(0)}, "555B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
		{Key{Number(math.Copysign(0, -1))}, "3D018BB1DF3DB27235766E81FD10406E"}, // another key than 0
		{Key{Number(1)}, "A0CD98B339BA78A5D0CF6953B87070B0"},
		{Key{Number(-1)}, "59938E7A936C1C5B9E3AE842BBC16839"},
		{Key{String("")}, "B2E9366E637A71B4E710384B2F4970A0"},
		{Key{String("asdf")}, "608BF1D598F5B63AD5520F04FE58C5E8"},
		{Key{String(strings.Repeat("a", 99))}, "3C02F609961C32AAC2B912B940D1209A"},
		{Key{String("/path1")}, "B499FD5198AE0F1EB6B77F6E428D2FF0"},
	} {
		got := V2.Append(nil, c.key)
		first, err := strconv.ParseUint(c.want[:2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		want := Format([]byte{byte(first) & topBits}) + c.want[2:]
		if Format(got) != want {
			t.Errorf("hash of %v = %s, want %s", c.key, Format(got), want)
		}
	}
}

func TestHierarchicalHashIsOnePerLevel(t *testing.T) {
	key := Key{String("/path1"), String("/path2"), String("/path3")}
	got := Format(MultiHash.Append(nil, key))
	want := "3499FD5198AE0F1EB6B77F6E428D2FF0" + "27A1848BD1102A3B65AFF266874D0FF5" + "2CA5ABC953544CF9BD94776DA5E6EA52"
	if got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
	if prefix := Format(MultiHash.Append(nil, key[:1])); !strings.HasPrefix(got, prefix) {
		t.Errorf("prefix %s is not the start of %s", prefix, got)
	}
}

func TestParseHeaderReadsBothSpellings(t *testing.T) {
	for text, want := range map[string]Key{
		`["a"]`:                {String("a")},
		`[]`:                   nil,
		`[null]`:               {Null()},
		"[ 1 , true,false ]\n": {Number(1), Bool(true), Bool(false)},
		`[-1.5e3]`:             {Number(-1500)},
		`[{}]`:                 {Undefined()},
		`["\U0001f600"]`:       {String("😀")},
		`["\ud83d\ude00"]`:     {String("😀")},
		`["\x01\v\a\/\"\\"]`:   {String("\x01\v\a/\"\\")},
		`["a\tb","c"]`:         {String("a\tb"), String("c")},
		`["鱀"]`:                {String("鱀")},
	} {
		got, err := ParseHeader(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got.String() != want.String() || !bytes.Equal(got.Encode(nil), want.Encode(nil)) {
			t.Errorf("%s = %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "x", "[", `["a"`, `["a" "b"]`, `["a"]x`, `[abc]`, `["\q"]`, `["\ud83d"]`, `[{"a":1}]`, "[\"\xff\"]", `[NaN]`, `[0x10]`} {
		if key, err := ParseHeader(text); err == nil {
			t.Errorf("%q was read as %v", text, key)
		}
	}
}

func TestDivideFillsTheSpace(t *testing.T) {
	four := V2.Divide(4)
	for i, want := range []string{"0FFF:F", "1FFF:E", "2FFF:D"} {
		if got := Format(four[i].Max); got != strings.Replace(want, ":", strings.Repeat("F", 27), 1) {
			t.Errorf("bound %d = %s", i, got)
		}
	}
	five := V2.Divide(5)
	if got := Format(five[3].Min) + " " + Format(five[3].Max); got != "26666666666666666666666666666664 33333333333333333333333333333330" {
		t.Errorf("the fourth of five is %s", got)
	}
	counts := make([]int, 4)
	for i := range 20_000 {
		key := V2.Append(nil, Key{String(strconv.Itoa(i))})
		for j, r := range four {
			if r.Contains(key) {
				counts[j]++
			}
		}
	}
	for j, n := range counts {
		if n < 4700 || n > 5300 {
			t.Errorf("range %d holds %d of 20000 keys", j, n)
		}
	}
}

func TestMiddleOfARange(t *testing.T) {
	if got := Format(V2.Middle(Full())); got != "20000000000000000000000000000000" {
		t.Errorf("middle of the space = %s", got)
	}
	for _, r := range V2.Divide(8) {
		m := V2.Middle(r)
		if !r.Contains(m) || bytes.Equal(m, r.Min) {
			t.Errorf("middle %s is outside [%s,%s)", Format(m), Format(r.Min), Format(r.Max))
		}
	}
}

func TestPointHoldsOnePartition(t *testing.T) {
	key := MultiHash.Append(nil, Key{String("tenant"), String("user")})
	if p := Point(key[:Size]); !p.Contains(key) {
		t.Error("the prefix window lacks a key below it")
	}
	other := bytes.Clone(key)
	other[Size-1]++
	if p := Point(key[:Size]); p.Contains(other) {
		t.Error("the prefix window holds a neighbour")
	}
}

func FuzzParseHeader(f *testing.F) {
	fuzzseed.Add(f)
	for _, s := range []string{`["a"]`, `["\U0001f600"]`, `[null,1,true,{}]`, `["\x01\v"]`, `["\ud83d\ude00"]`, `[]`, `["`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseHeader(text)
		if err != nil {
			return
		}
		again, err := ParseHeader(key.String())
		if err != nil {
			t.Fatalf("%q gave %s, which does not parse: %v", text, key, err)
		}
		if !bytes.Equal(key.Encode(nil), again.Encode(nil)) {
			t.Fatalf("%q: %s is read back as %s", text, key, again)
		}
	})
}
