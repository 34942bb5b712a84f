package cosmosfeed_test

import (
	"fmt"
	"strings"
	"testing"

	"feedbox/changefeed/cosmosfeed"
)

// The values are from the SDKs' shared baseline (azcosmos, internal/epk/testdata), with the
// two top bits of each part cleared.
func TestEffectivePartitionKeys(t *testing.T) {
	for _, tt := range []struct {
		want   string
		values []string // raw JSON, "" is undefined
	}{
		{"51622DAA78F835834610ABE56EFF5CB5", []string{""}},
		{"778867E4430E67857ACE5C908374FE16", []string{"null"}},
		{"4E711127C5B5A8E4726AC6DD306A3E59", []string{"true"}},
		{"EFE1BE91E90A3439635E0E9E37361EF2", []string{"false"}},
		{"B2E9366E637A71B4E710384B2F4970A0", []string{`""`}},
		{"608BF1D598F5B63AD5520F04FE58C5E8", []string{`"asdf"`}},
		{"608BF1D598F5B63AD5520F04FE58C5E8", []string{`"\u0061sdf"`}},
		{"3C02F609961C32AAC2B912B940D1209A", []string{`"` + strings.Repeat("a", 99) + `"`}},
		{"8DBD7D229437BB665DE6417747994D57", []string{`"` + strings.Repeat("a", 100) + `"`}},
		{"88042541D30C8BF90D7092B1519AE0BC", []string{`"` + strings.Repeat("a", 101) + `"`}},
		{"555B95BEDAC4B1E9EC1CDC9BB0DDDE58", []string{"0"}},
		{"3D018BB1DF3DB27235766E81FD10406E", []string{"-0"}},
		{"A0CD98B339BA78A5D0CF6953B87070B0", []string{"1"}},
		{"59938E7A936C1C5B9E3AE842BBC16839", []string{"-1"}},
		{"0E6CBA63A280927DE485DEF865800139", []string{"5E-324"}},
		{"71424D996457102634591FF245DBCC4D", []string{"1.7976931348623157E+308"}},
		{"6EDB959178DFCCA18983F89384D1629B", []string{"9223372036854775807"}},
		{"12C221C7032CED1F9E6693CE1428E6CF", []string{"9007199254740991"}},
		{"B499FD5198AE0F1EB6B77F6E428D2FF0", []string{`"/path1"`}},
		{"B499FD5198AE0F1EB6B77F6E428D2FF0E7A1848BD1102A3B65AFF266874D0FF5ECA5ABC953544CF9BD94776DA5E6EA52", []string{`"/path1"`, `"/path2"`, `"/path3"`}},
	} {
		if got, want := cosmosfeed.KeyText(tt.values...), masked(tt.want); got != want {
			t.Errorf("%.40v: %s, want %s", tt.values, got, want)
		}
	}
}

// masked clears the two top bits of each 32 digits.
func masked(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i += 32 {
		var digit int
		if _, err := fmt.Sscanf(text[i:i+1], "%X", &digit); err != nil {
			panic(err)
		}
		fmt.Fprintf(&out, "%X%s", digit&3, text[i+1:i+32])
	}
	return out.String()
}
