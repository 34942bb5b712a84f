package main

import "strings"

// status colours a text by its first word.
func (p *program) status(text string) string {
	switch first, _, _ := strings.Cut(text, " "); first {
	case "ok", "healthy":
		return p.style.Good(text)
	case "failed", "stopped", "expired,":
		return p.style.Bad(text)
	case "warning", "unknown", "retrying", "unread", "not", "held", "silent", "free":
		return p.style.Warn(text)
	}
	return text
}

// paintStatus returns a Paint function for tables with a status column.
func (p *program) paintStatus(column int) func(int, string) string {
	return func(at int, text string) string {
		if at == column {
			return p.status(text)
		}
		return text
	}
}
