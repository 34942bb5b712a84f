package httpapi

import "strings"

// words holds the names of aggregates for texts.
type words struct{ noun, plural string }

// say replaces {noun}, {a noun} and {plural} in a text, and the capitalized {Noun} and
// {Plural}.
func (w words) say(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	article := "a "
	if strings.IndexAny(w.noun, "aeio") == 0 { // not u, because it mostly sounds as in user
		article = "an "
	}
	return strings.NewReplacer(
		"{noun}", w.noun, "{a noun}", article+w.noun, "{plural}", w.plural,
		"{Noun}", title(w.noun), "{Plural}", title(w.plural),
	).Replace(text)
}

func wordsOf(resources []*collection) words {
	var nouns, plurals []string
	for _, c := range resources {
		nouns, plurals = append(nouns, c.Noun), append(plurals, c.Plural)
	}
	return words{listed(nouns, "or"), listed(plurals, "and")}
}

// listed formats a list as "a, b or c".
func listed(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

func title(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// camel returns a path verb as an identifier: change-name becomes changeName.
func camel(verb string) string {
	parts := strings.Split(verb, "-")
	for i := range parts[1:] {
		parts[i+1] = title(parts[i+1])
	}
	return strings.Join(parts, "")
}

// summaryOf returns the summary of a path verb: ship becomes "Ship {a noun}", and change-name
// "Change name of {a noun}".
func summaryOf(verb string) string {
	text := title(strings.ReplaceAll(verb, "-", " "))
	if strings.Contains(text, " ") {
		text += " of"
	}
	return text + " {a noun}"
}
