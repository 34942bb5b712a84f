package config

import (
	"fmt"
	"strings"
)

// Event is the contract with the writers of events: it selects the documents that are events
// and names the members that fill a message.
type Event struct {
	Types             []string `env:"TYPES" envDefault:"domainEvent" doc:"types of the documents that are events, separated by commas"`
	TypeMember        string   `env:"TYPE_MEMBER" envDefault:"type" doc:"member of a document that says its type"`
	IDMember          string   `env:"ID_MEMBER" envDefault:"id" doc:"member of an event that becomes the message id"`
	KeyMember         string   `env:"KEY_MEMBER" envDefault:"partitionKey" doc:"member of an event that becomes the session: the container's partition key path without the slash"`
	BodyMember        string   `env:"BODY_MEMBER" envDefault:"data" doc:"member of an event whose object becomes the message, byte for byte; . is the whole document"`
	SubjectMember     string   `env:"SUBJECT_MEMBER" envDefault:"action" doc:"member of the body, or /member of the document, that becomes the subject of the message"`
	SequenceMember    string   `env:"SEQUENCE_MEMBER" envDefault:"sequence" doc:"member of the body, or /member of the document, that counts the events of a key from 1; optional in documents"`
	OrdinalMember     string   `env:"ORDINAL_MEMBER" envDefault:"ordinal" doc:"member of the body, or /member of the document, that counts the events of a transaction from 1, for their order; optional in documents"`
	VersionMember     string   `env:"VERSION_MEMBER" envDefault:"aggregateVersion" doc:"member of the body, or /member of the document, with the version of what the event happened to; optional in documents"`
	CreatedAtMember   string   `env:"CREATED_AT_MEMBER" envDefault:"createdAt" doc:"member of the body, or /member of the document, that says when it happened; optional in documents"`
	TraceparentMember string   `env:"TRACEPARENT_MEMBER" envDefault:"traceparent" doc:"member of the body, or /member of the document, with the W3C trace context; optional in documents"`
}

// checkEvent refuses names that no member has, and one name for two.
func checkEvent(report *report, e Event) {
	const name, body = "write the name of one member, without dots, slashes and quotes", "write the name of one member of the body, or of the document behind a slash, for example /eventType"
	owner := map[string]string{} // of a place, the variable that names it
	for _, m := range []struct {
		variable, value string
		ofBody          bool
	}{
		{"FEEDBOX_EVENT_TYPE_MEMBER", e.TypeMember, false},
		{"FEEDBOX_EVENT_ID_MEMBER", e.IDMember, false},
		{"FEEDBOX_EVENT_KEY_MEMBER", e.KeyMember, false},
		{"FEEDBOX_EVENT_BODY_MEMBER", e.BodyMember, false},
		{"FEEDBOX_EVENT_SUBJECT_MEMBER", e.SubjectMember, true},
		{"FEEDBOX_EVENT_SEQUENCE_MEMBER", e.SequenceMember, true},
		{"FEEDBOX_EVENT_ORDINAL_MEMBER", e.OrdinalMember, true},
		{"FEEDBOX_EVENT_VERSION_MEMBER", e.VersionMember, true},
		{"FEEDBOX_EVENT_CREATED_AT_MEMBER", e.CreatedAtMember, true},
		{"FEEDBOX_EVENT_TRACEPARENT_MEMBER", e.TraceparentMember, true},
	} {
		place, hint, isBeside := m.value, name, !m.ofBody || e.BodyMember == "."
		if m.ofBody {
			hint = body
			if rest, found := strings.CutPrefix(place, "/"); found {
				place, isBeside = rest, true
			}
		}
		if place == "" || strings.ContainsAny(place, `./"\`) && (m.variable != "FEEDBOX_EVENT_BODY_MEMBER" || place != ".") {
			report.add(m.variable, fmt.Sprintf("%q is not the name of a member", m.value), hint)
			continue
		}
		if !isBeside {
			place = "in the body: " + place
		}
		isSubjectOfType := m.variable == "FEEDBOX_EVENT_SUBJECT_MEMBER" && owner[place] == "FEEDBOX_EVENT_TYPE_MEMBER"
		if owner[place] != "" && !isSubjectOfType {
			report.add(m.variable, fmt.Sprintf("%q is the member of %s, too", m.value, owner[place]), "give each a member of its own")
			continue
		}
		if !isSubjectOfType {
			owner[place] = m.variable
		}
	}
	for _, one := range e.Types {
		if strings.TrimSpace(one) == "" {
			report.add("FEEDBOX_EVENT_TYPES", "names a type that is empty", "write for example OrderPlaced,OrderPaid")
			return
		}
	}
}
