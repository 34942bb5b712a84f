package busemu

import (
	"fmt"
	"strings"
	"unicode"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// The filter of a JMS selector, by name and by descriptor.
const (
	selectorFilter     = "apache.org:selector-filter:string"
	selectorFilterCode = uint64(0x0000468C00000004)
)

// jmsHeaders maps the header fields of selectors to the names of SQL filters.
var jmsHeaders = map[string]string{
	"JMSMessageID": "sys.MessageId", "JMSCorrelationID": "sys.CorrelationId", "JMSType": "sys.Label", "JMSXGroupID": "sys.SessionId",
}

// jmsSelector returns the selector of a JMS consumer as an SQL filter. It refuses other
// filters.
func jmsSelector(filters amqp.Map) (string, error) {
	selector := ""
	for _, e := range filters {
		name, _ := amqp.Text(e.Key)
		d, ok := e.Value.(amqp.Described)
		text, isText := d.Value.(string)
		kind, _ := amqp.Text(d.Descriptor)
		if !ok || !isText || kind != selectorFilter && d.Descriptor != selectorFilterCode {
			return "", &broker.Error{Condition: broker.NotImplemented, Description: fmt.Sprintf("The source filter '%s' is not supported by this emulator.", name)}
		}
		var err error
		if selector, err = sqlOfSelector(text); err != nil {
			return "", err
		}
	}
	return selector, nil
}

// sqlOfSelector translates the names of header fields outside of literals.
func sqlOfSelector(selector string) (string, error) {
	var out strings.Builder
	for rest := selector; rest != ""; {
		n := 0
		switch r := rune(rest[0]); {
		case r == '\'': // a literal, up to its end; '' counts as two adjacent literals
			n = 1 + strings.IndexByte(rest[1:], '\'') + 1
			if n == 1 {
				n = len(rest) // the filter's parser reports it
			}
			out.WriteString(rest[:n])
		case isIdentifier(r):
			for n < len(rest) && isIdentifier(rune(rest[n])) {
				n++
			}
			word := rest[:n]
			header, known := jmsHeaders[word]
			switch {
			case known:
				word = header
			case strings.HasPrefix(word, "JMS"):
				return "", &broker.Error{Condition: broker.NotImplemented, Description: fmt.Sprintf("The header field '%s' in a selector is not supported by this emulator.", word)}
			}
			out.WriteString(word)
		default:
			n = 1
			out.WriteByte(rest[0])
		}
		rest = rest[n:]
	}
	return out.String(), nil
}

func isIdentifier(r rune) bool {
	return r == '_' || r == '$' || r >= 0x80 || unicode.IsLetter(r) || unicode.IsDigit(r)
}
