package httpapi

import "strings"

// words are what a text calls the aggregates it is about.
type words struct{ noun, plural string }

// say puts the words into a text: {noun}, {a noun}, {plural}, and with a capital
// {Noun} and {Plural}.
func (w words) say(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	article := "a "
	if strings.IndexAny(w.noun, "aeio") == 0 { // u is mostly that of user
		article = "an "
	}
	return strings.NewReplacer(
		"{noun}", w.noun, "{a noun}", article+w.noun, "{plural}", w.plural,
		"{Noun}", title(w.noun), "{Plural}", title(w.plural),
	).Replace(text)
}

// wordsOf are the words for several resources: one of them, and all of them.
func wordsOf(resources []*collection) words {
	var nouns, plurals []string
	for _, c := range resources {
		nouns, plurals = append(nouns, c.Noun), append(plurals, c.Plural)
	}
	return words{listed(nouns, "or"), listed(plurals, "and")}
}

// listed writes a, b or c.
func listed(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// title is a text with a capital at its beginning.
func title(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// camel is a verb of a path as an identifier: change-name is changeName.
func camel(verb string) string {
	parts := strings.Split(verb, "-")
	for i := range parts[1:] {
		parts[i+1] = title(parts[i+1])
	}
	return strings.Join(parts, "")
}
