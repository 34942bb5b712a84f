package sqlfilter

// Correlate returns a correlation filter: every field that is set must be equal, including its
// case.
func Correlate(want Fields) Condition { return Condition{correlation(want)} }

type correlation Fields

func (c correlation) holds(f *Fields) truth {
	for _, pair := range [...][2]string{
		{c.MessageID, f.MessageID},
		{c.CorrelationID, f.CorrelationID},
		{c.To, f.To},
		{c.ReplyTo, f.ReplyTo},
		{c.Subject, f.Subject},
		{c.SessionID, f.SessionID},
		{c.ReplyToSessionID, f.ReplyToSessionID},
		{c.ContentType, f.ContentType},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return isFalse
		}
	}
	for name, want := range c.Properties {
		if compareEqual(normal(want), normal(f.Properties[name])) != isTrue {
			return isFalse
		}
	}
	return isTrue
}
