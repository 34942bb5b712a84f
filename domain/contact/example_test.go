package contact_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

var (
	exampleID  = uuid.MustParse("b5e2e7aa-4982-4735-9422-c39a7c4af5c2")
	exampleNow = time.Date(2021, 9, 22, 11, 7, 37, 0, time.UTC)
)

func exampleDetails() contact.Details {
	name, _ := contact.NewName("John", "Doe")
	company, _ := contact.NewCompany(contact.CompanyFields{CompanyName: "Contoso"})
	return contact.Details{Name: name, Company: company}
}

// A new contact raises one event, even if verbs change it before the commit.
func ExampleNew() {
	c, _ := contact.New(exampleID, exampleDetails(), uuid.New(), exampleNow)
	jane, _ := contact.NewName("Jane", "Doe")
	_ = c.UpdateName(jane, uuid.New(), exampleNow)

	commit, _ := c.Pending()
	for _, e := range commit.Events {
		meta := e.Metadata()
		fmt.Println(e.Action(), "version", meta.AggregateVersion, "sequence", meta.Sequence)
	}
	fmt.Println(commit.Events[0].(contact.ContactCreatedEvent).Contact.FullName())
	// Output:
	// ContactCreatedEvent version 1 sequence 1
	// Jane Doe
}

// The events of one commit share its version. Each has its own sequence.
func ExampleContact_Pending() {
	c, _ := contact.New(exampleID, exampleDetails(), uuid.New(), exampleNow)
	created, _ := c.Pending()
	c.Committed(created)

	jane, _ := contact.NewName("Jane", "Doe")
	address := "jane@contoso.com"
	email, _ := contact.NewEmail(&address)
	_ = c.UpdateName(jane, uuid.New(), exampleNow)
	_ = c.UpdateEmail(email, uuid.New(), exampleNow)

	commit, _ := c.Pending()
	for _, e := range commit.Events {
		meta := e.Metadata()
		fmt.Println(e.Action(), "version", meta.AggregateVersion, "sequence", meta.Sequence)
	}
	c.Committed(commit)
	_, changed := c.Pending()
	fmt.Println("still pending:", changed)
	// Output:
	// ContactNameUpdatedEvent version 2 sequence 2
	// ContactEmailUpdatedEvent version 2 sequence 3
	// still pending: false
}

// Every broken rule is reported at once.
func ExampleNewCompany() {
	_, err := contact.NewCompany(contact.CompanyFields{CompanyName: " ", HouseNumber: "12345678901"})
	fmt.Println(err)
	// Output:
	// the request breaks the rules of its fields: /companyName must not be empty; /houseNumber must be at most 10 characters long
}
