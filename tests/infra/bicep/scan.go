package bicep

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of expressions.
const maxDepth = 100

// SyntaxError is a place where a text is not in the dialect.
type SyntaxError struct {
	Pos     Pos
	Problem string
}

func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.Problem }

// scanner reads characters and words. Faults are panics of *SyntaxError, caught in
// Parse.
type scanner struct {
	file  string
	text  string
	at    int
	depth int
	lines []int // where each line begins
}

func newScanner(file, text string) scanner {
	s := scanner{file: file, text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

func (s *scanner) pos() Pos {
	line, found := slices.BinarySearch(s.lines, s.at)
	if !found {
		line--
	}
	return Pos{File: s.file, Line: line + 1, Col: utf8.RuneCountInString(s.text[s.lines[line]:s.at]) + 1}
}

func (s *scanner) fail(format string, args ...any) {
	panic(&SyntaxError{Pos: s.pos(), Problem: fmt.Sprintf(format, args...)})
}

func (s *scanner) enter() {
	if s.depth++; s.depth > maxDepth {
		s.fail("nested deeper than %d", maxDepth)
	}
}

func (s *scanner) leave() { s.depth-- }

func (s *scanner) rest() string { return s.text[s.at:] }

func (s *scanner) next() byte {
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// space skips blanks and comments, and line ends if lines is set.
func (s *scanner) space(lines bool) {
	for s.at < len(s.text) {
		switch c := s.next(); {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			s.at++
		case strings.HasPrefix(s.rest(), "//"):
			end := strings.IndexByte(s.rest(), '\n')
			if end < 0 {
				end = len(s.rest())
			}
			s.at += end
		case strings.HasPrefix(s.rest(), "/*"):
			end := strings.Index(s.rest()[2:], "*/")
			if end < 0 {
				s.fail("comment without an end")
			}
			s.at += end + 4
		default:
			return
		}
	}
}

// accept consumes text if it is next on this line.
func (s *scanner) accept(text string) bool {
	s.space(false)
	if strings.HasPrefix(s.rest(), text) {
		s.at += len(text)
		return true
	}
	return false
}

func (s *scanner) expect(text string) {
	if !s.accept(text) {
		s.fail("expected %q", text)
	}
}

// word returns the identifier that is next on this line, or "".
func (s *scanner) word() string {
	s.space(false)
	start := s.at
	for s.at < len(s.text) && (letter(s.next()) || s.at > start && digit(s.next())) {
		s.at++
	}
	return s.text[start:s.at]
}

// keyword consumes a whole word.
func (s *scanner) keyword(word string) bool {
	before := s.at
	if s.word() == word {
		return true
	}
	s.at = before
	return false
}

func (s *scanner) name() string {
	w := s.word()
	if w == "" {
		s.fail("expected a name")
	}
	return w
}

// lineEnd requires the end of the line.
func (s *scanner) lineEnd() {
	s.space(false)
	if s.at < len(s.text) && s.next() != '\n' {
		s.fail("unexpected %q", firstRune(s.rest()))
	}
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
