package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func (p *Page) functions() template.FuncMap {
	return template.FuncMap{
		"path": func(below string) string { return p.options.Prefix + "/" + below },
		"link": func(below string, query ...string) (string, error) {
			if len(query)%2 != 0 {
				return "", fmt.Errorf("link %q: names and values come in pairs", below)
			}
			values := url.Values{}
			for i := 0; i < len(query); i += 2 {
				values.Set(query[i], query[i+1])
			}
			return p.options.Prefix + "/" + below + "?" + values.Encode(), nil
		},
		"segment": url.PathEscape,
		"keyed": func(below, key string, query ...string) string {
			return p.options.Prefix + Keyed("/"+below, key, query...)
		},
		"token": func() template.HTML {
			return template.HTML(`<input type="hidden" name="token" value="` + p.blank + `">`) //nolint:gosec // rand.Text is letters and digits
		},
		"count": count, "age": age, "span": Span, "moment": moment, "spark": spark, "rate": Rate,
	}
}

// Keyed returns the address of a key below a path, with the names and values of a query. A key is a segment
// of the path, except "." and "..", which browsers remove even if they are escaped, and "replay", which is an act
// of a timeline. These are in the query. KeyOf reads both. Empty values are omitted.
func Keyed(below, key string, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			values.Set(query[i], query[i+1])
		}
	}
	if key == "." || key == ".." || key == "replay" {
		values.Set("key", key)
	} else {
		below += "/" + url.PathEscape(key)
	}
	if len(values) > 0 {
		below += "?" + values.Encode()
	}
	return below
}

// KeyOf returns the key of an address that Keyed returned. The pattern of a path with a key names it key.
func KeyOf(r *http.Request) (string, error) {
	key := cmp.Or(r.PathValue("key"), r.URL.Query().Get("key"))
	if key == "" {
		return "", &Refusal{Status: http.StatusNotFound, Title: "Page not found", Detail: "The address has no key.", Next: "Use the navigation."}
	}
	return key, nil
}

// count formats a whole number exactly, with thousands separators.
func count(n any) (string, error) {
	var text string
	switch n.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		text = fmt.Sprint(n)
	default:
		return "", fmt.Errorf("count: %T is no whole number", n)
	}
	return group(text), nil
}

// Number formats a whole number as count does.
func Number(n int64) string { return group(strconv.FormatInt(n, 10)) }

func group(text string) string {
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// Rate formats events per second; below 10 with one decimal place.
func Rate(perSecond float64) string {
	switch {
	case math.IsNaN(perSecond):
		return "–"
	case perSecond == 0:
		return "0"
	case perSecond < 0.05: // not 0
		return "<0.1"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return Number(int64(math.Round(perSecond)))
}

// Span formats a duration with at most two units.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return two(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func two(a int, unitA string, b int, unitB string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unitA)
	}
	return fmt.Sprintf("%d %s %d %s", a, unitA, b, unitB)
}

func age(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	d := max(0, time.Since(t).Truncate(time.Second))
	if d < time.Minute {
		return strconv.Itoa(int(d.Seconds())) + " s"
	}
	return Span(d)
}

// moment formats a time in UTC, with milliseconds like the log, unless it has whole seconds: Cosmos DB
// stores the time of a document so.
func moment(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	if t.Nanosecond() == 0 {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// The size of a curve in SVG units; the style sheet scales it.
const sparkWidth, sparkHeight = 300.0, 48.0

// spark draws a curve from zero up, with a gap at each NaN. Its label has the highest value.
func spark(points []float64) template.HTML {
	top := 0.0
	for _, v := range points {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	var line, area strings.Builder
	open := false
	var lastX float64
	finish := func() {
		if open {
			fmt.Fprintf(&area, "L%.1f %.1fZ", lastX, sparkHeight)
		}
		open = false
	}
	for i, v := range points {
		if math.IsNaN(v) {
			finish()
			continue
		}
		x, y := sparkWidth, sparkHeight-1
		if len(points) > 1 {
			x = sparkWidth * float64(i) / float64(len(points)-1)
		}
		if top > 0 {
			y = sparkHeight - 1 - (sparkHeight-3)*v/top
		}
		if !open {
			fmt.Fprintf(&line, "M%.1f %.1f", x, y)
			fmt.Fprintf(&area, "M%.1f %.1fL%.1f %.1f", x, sparkHeight, x, y)
			open = true
		} else {
			fmt.Fprintf(&line, "L%.1f %.1f", x, y)
			fmt.Fprintf(&area, "L%.1f %.1f", x, y)
		}
		lastX = x
	}
	finish()
	label := "the last minutes, not known"
	if line.Len() > 0 {
		label = "the last minutes, at most " + Rate(top)
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // numbers and a fixed text
		`<svg class="spark" viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" role="img" aria-label="%s"><path class="area" d="%s"/><path class="line" d="%s"/></svg>`,
		sparkWidth, sparkHeight, label, area.String(), line.String()))
}
