//go:build browser

package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// contact creates a contact through the API.
func contact(t *testing.T, e endpoints, name string) {
	t.Helper()
	body := fmt.Sprintf(`{"firstName":%q,"lastName":"Doe","email":"jd@contoso.com","companyName":"Contoso"}`, name)
	reply, err := http.Post(e.API+"/api/contacts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusCreated {
		t.Fatalf("create: %s", reply.Status)
	}
}

// shows waits for an element.
func (b *tab) shows(selector string) {
	b.Helper()
	b.becomes(`document.querySelector(` + quoted(selector) + `)`)
}

func TestDatabaseExplorer(t *testing.T) {
	_, e := dev(t)
	for i := range 20 {
		contact(t, e, fmt.Sprintf("First%d", i))
	}
	b := open(t, e.Page)
	b.visit("/database")
	b.sees("/partitionKey")
	b.press("data")
	b.sees("25 on this page")
	b.sees("request units")
	b.press("Next page")
	b.sees("First page")
	b.fill("q", "SELECT c.id FROM c WHERE c.type = 'contact'")
	b.press("Run")
	b.sees("20 on this page")
	b.fill("q", "SELEKT")
	b.press("Run")
	b.sees("400 Bad Request")
	b.press("All documents")
	b.sees("25 on this page")

	b.click("#range-0 button")
	b.press("Merge with 4")
	b.shows("#range-6")
	if over := b.narrow(); over > 0 {
		t.Errorf("at 400 pixels the container is %d too wide", over)
	}

	b.fill("q", "SELECT * FROM c WHERE c.type = 'contact'")
	b.press("Run")
	b.sees("20 on this page")
	b.click("#rows a")
	b.sees("firstName")
	b.press("Edit")
	b.shows("#f-document")
	b.becomes(`(() => {const f = document.getElementById("f-document"); const d = JSON.parse(f.value); d.seen = "in the explorer"; f.value = JSON.stringify(d); return true})()`)
	b.confirm("Replace")
	b.sees("replaced")
	b.press("See the document")
	b.sees("in the explorer")
	b.press("Delete")
	b.sees("is deleted from the emulator")
	b.confirm("Delete")
	b.sees("deleted")
	b.press("See the container")
	b.sees("Physical partitions")

	b.press("Change feed, live")
	b.sees("No change yet")
	contact(t, e, "Late")
	b.sees("domainEvent")
	b.press("Pause")
	b.sees("paused")
}

func TestBrokerExplorer(t *testing.T) {
	_, e := dev(t)
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	b := open(t, e.Page)
	b.visit("/broker")
	b.sees("contacts")
	contact(t, e, "John")
	b.sees("1 messages accepted") // live
	b.press("rules")
	b.sees("every message")

	// The demo subscriber rejects a message that is not an event, and the broker dead-letters it.
	b.press("Broker")
	b.press("Send a message")
	b.fill("f-id", "not-an-event")
	b.fill("f-session", "s1")
	b.fill("f-subject", "Greeting")
	b.fill("f-body", "hello")
	b.confirm("Send")
	b.sees("sent to contacts as not-an-event")
	b.press("See the entities")
	b.press("dead letters")
	b.sees("Dead letters of all")
	b.becomes(`document.body.innerText.includes("not-an-event") || (location.reload(), false)`)
	b.press("not-an-event")
	b.sees("dead letter for")
	if over := b.narrow(); over > 0 {
		t.Errorf("at 400 pixels the message is %d too wide", over)
	}
	b.press("Resubmit")
	b.sees("A topic gives the copy to all of its subscriptions")
	b.fill("f-id", "again")
	b.fill("f-body", `{"mended":true}`)
	b.confirm("Resubmit")
	b.sees("removed from the dead letters")
	b.press("Broker")
	b.click(`[aria-label="Disable contacts"]`)
	b.sees("Disabled")
	b.click(`[aria-label="Enable contacts"]`)
	b.shows(`[aria-label="Disable contacts"]`)
}

func TestFaultsAreTurnedOnAndOff(t *testing.T) {
	_, e := dev(t)
	b := open(t, e.Page)
	b.visit("/faults")
	b.click("#cosmos-slow button")
	b.sees("1 fault is on")
	contact(t, e, "Slow")
	b.sees("calls affected")
	b.click("#bus-full button")
	b.sees("2 faults are on")
	b.press("Turn all off")
	b.becomes(`!document.querySelector("#active-faults")`)
	b.press("+ 1 hour")
	b.sees("moved ahead here by 1 h")
	if over := b.narrow(); over > 0 {
		t.Errorf("at 400 pixels the faults page is %d too wide", over)
	}
}

func TestExplorersAreValidAndAccessible(t *testing.T) {
	modules := tools(t)
	_, e := dev(t)
	contact(t, e, "John")
	b := open(t, e.Page)
	b.visit("/database/container/contacts/data")
	b.shows("#rows a")
	var document string
	b.value(`document.querySelector("#rows a").getAttribute("href")`, &document)
	b.visit("/faults")
	b.click("#bus-slow button")
	b.sees("1 fault is on")
	b.pass(modules, []string{
		"/database", "/database/container/contacts/data", "/database/container/contacts/data?query=SELEKT", document,
		strings.Replace(document, "/document/contacts/data?", "/delete?db=contacts&coll=data&", 1), "/database/feed/contacts/data",
		"/broker", "/broker/messages?path=contacts/Subscriptions/all", "/broker/rules?path=contacts/Subscriptions/all", "/broker/send?to=contacts", "/faults",
	})
}

func TestPlaygroundIsValidAndAccessible(t *testing.T) {
	modules := tools(t)
	_, e := dev(t, "--play", "--relays", "1", "--rate", "10")
	b := open(t, e.Page)
	b.visit("/play")
	b.press("Split a range")
	b.sees("End it now")
	b.pass(modules, []string{"/play"})
}
