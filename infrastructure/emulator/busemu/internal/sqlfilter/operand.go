package sqlfilter

import (
	"fmt"
	"strings"
)

// operand is a value in a comparison; nil is an absent value.
type operand interface{ value(f *Fields) any }

type literal struct{ v any }

func (l literal) value(*Fields) any { return l.v }

// propertyRef is a user or system property. Case matters only between properties whose names
// differ in nothing else.
type propertyRef struct {
	name   string
	system func(*Fields) any // of a system property; nil otherwise
}

func (p propertyRef) value(f *Fields) any {
	if p.system != nil {
		return p.system(f)
	}
	if v, ok := f.Properties[p.name]; ok {
		return normal(v)
	}
	for name, v := range f.Properties {
		if strings.EqualFold(name, p.name) {
			return normal(v)
		}
	}
	return nil
}

// systemText has the system properties that are texts, by lower-case name. An action can set
// them.
var systemText = map[string]func(*Fields) *string{
	"messageid":        func(f *Fields) *string { return &f.MessageID },
	"correlationid":    func(f *Fields) *string { return &f.CorrelationID },
	"to":               func(f *Fields) *string { return &f.To },
	"replyto":          func(f *Fields) *string { return &f.ReplyTo },
	"label":            func(f *Fields) *string { return &f.Subject },
	"subject":          func(f *Fields) *string { return &f.Subject },
	"sessionid":        func(f *Fields) *string { return &f.SessionID },
	"replytosessionid": func(f *Fields) *string { return &f.ReplyToSessionID },
	"contenttype":      func(f *Fields) *string { return &f.ContentType },
}

// systemFacts are the system properties that the broker sets.
var systemFacts = map[string]func(*Fields) any{
	"partitionkey": func(f *Fields) any {
		if f.PartitionKey == "" {
			return nil
		}
		return f.PartitionKey
	},
	"enqueuedtimeutc": func(f *Fields) any { return f.EnqueuedAt },
	"sequencenumber":  func(f *Fields) any { return f.SequenceNumber },
}

func newSystemProperty(name string) (operand, error) {
	lower := strings.ToLower(name)
	if get, ok := systemFacts[lower]; ok {
		return propertyRef{name: name, system: get}, nil
	}
	at, ok := systemText[lower]
	if !ok {
		return nil, fmt.Errorf("the system property sys.%s is not supported", name)
	}
	return propertyRef{name: name, system: func(f *Fields) any {
		if s := *at(f); s != "" {
			return s
		}
		return nil
	}}, nil
}
