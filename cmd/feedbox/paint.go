package main

import "strings"

// status colours a word that says how something is.
func (p *program) status(text string) string {
	switch first, _, _ := strings.Cut(text, " "); first {
	case "ok", "healthy":
		return p.style.Good(text)
	case "failed", "stopped", "owner":
		return p.style.Bad(text)
	case "warning", "unknown", "retrying", "held":
		return p.style.Warn(text)
	}
	return text
}

// paintStatus is for tables in which one column holds such words.
func (p *program) paintStatus(column int) func(int, string) string {
	return func(at int, text string) string {
		if at == column {
			return p.status(text)
		}
		return text
	}
}
