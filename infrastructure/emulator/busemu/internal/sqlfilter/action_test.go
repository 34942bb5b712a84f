package sqlfilter

import (
	"maps"
	"reflect"
	"testing"
)

func TestSQLActions(t *testing.T) {
	before := Fields{Subject: "s", Properties: map[string]any{"n": int32(2), "Color": "red"}}
	for expression, want := range map[string]Fields{
		"SET a = 1":                                  {Subject: "s", Properties: map[string]any{"n": int32(2), "Color": "red", "a": int64(1)}},
		"set n = n + 1; set m = n * 2;":              {Subject: "s", Properties: map[string]any{"n": int64(3), "Color": "red", "m": int64(6)}},
		"REMOVE n SET color = 'x'":                   {Subject: "s", Properties: map[string]any{"Color": "x"}},
		"REMOVE missing":                             {Subject: "s", Properties: map[string]any{"n": int32(2), "Color": "red"}},
		"SET sys.Label = Color; REMOVE user.[Color]": {Subject: "red", Properties: map[string]any{"n": int32(2)}},
		"REMOVE sys.Label":                           {Properties: map[string]any{"n": int32(2), "Color": "red"}},
		"SET sys.To = 'x' SET a = sys.To":            {Subject: "s", To: "x", Properties: map[string]any{"n": int32(2), "Color": "red", "a": "x"}},
	} {
		a, err := ParseAction(expression, nil)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		original := maps.Clone(before.Properties)
		got, _, err := a.Run(&before)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, %v", expression, got, err)
		}
		if !maps.Equal(original, before.Properties) {
			t.Errorf("%s changed the message that it makes a copy of", expression)
		}
	}
	for _, expression := range []string{"SET a = missing", "SET a = n / 0", "SET sys.Label = 1"} {
		a, err := ParseAction(expression, nil)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, _, err := a.Run(&before); err == nil {
			t.Errorf("%s: %+v", expression, got)
		}
	}
	for _, expression := range []string{
		"", ";", "SET", "SET a", "SET a 1", "SET a =", "SET a = 1 = 1", "REMOVE", "REMOVE 'a'", "a = 1", "SET a = 1;; SET b = 1",
		"SET newid() = 1", "SET sys.SequenceNumber = 1", "SET sys.Nothing = 1", "SET and = 1", "SET a = 1 b = 2", "SET a = @p",
	} {
		if a, err := ParseAction(expression, nil); err == nil {
			t.Errorf("%q is accepted: %+v", expression, a)
		}
	}
}

// FuzzParseAction: no panic, and an accepted action can be run.
func FuzzParseAction(f *testing.F) {
	for _, seed := range []string{"SET a = 1; REMOVE b", "SET sys.Label = p('x') SET [a]]] = -a % 2", "REMOVE user.x;"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, expression string) {
		if a, err := ParseAction(expression, []Parameter{{"@p", int64(1)}}); err == nil {
			_, _, _ = a.Run(&Fields{Properties: map[string]any{"a": int64(1), "b": "x"}})
		}
	})
}
