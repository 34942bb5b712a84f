package order_test

import (
	"feedbox/domain/fault"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/orders/order"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func place(t *testing.T) *order.Order {
	t.Helper()
	o, err := order.Place(uuid.New(), "", "Contoso", now)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func actions(t *testing.T, o *order.Order) string {
	t.Helper()
	commit, _ := o.Pending()
	var names []string
	for _, e := range commit.Events {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(e.Action(), "Order"), "Event"))
	}
	return strings.Join(names, " ")
}

// Two lines in one commit are two events.
func TestManyPiecesBecomeSeveralLines(t *testing.T) {
	o := place(t)
	if err := o.Add("pen", 15, 100, now); err != nil {
		t.Fatal(err)
	}
	if got := actions(t, o); got != "Placed LineAdded LineAdded" || o.State().Total() != 1500 {
		t.Errorf("events %s, total %d", got, o.State().Total())
	}
}

func TestCreditLimitCoversAllLines(t *testing.T) {
	o := place(t)
	if err := o.Add("desk", 9, order.CreditLimit/10, now); err != nil {
		t.Fatal(err)
	}
	if err := o.Add("desk", 2, order.CreditLimit/10, now); !fault.Is(err, fault.Conflict) {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := o.Add("desk", 1, order.CreditLimit/10, now); err != nil {
		t.Errorf("up to the limit: %v", err)
	}
}

func TestClosedOrderCannotChange(t *testing.T) {
	for name, end := range map[string]func(o *order.Order) error{
		"shipped":   func(o *order.Order) error { return o.Ship(now) },
		"cancelled": func(o *order.Order) error { return o.Cancel(now) },
	} {
		o := place(t)
		if err := o.Ship(now); !fault.Is(err, fault.Conflict) {
			t.Errorf("an empty order: %v", err)
		}
		if err := o.Add("pen", 1, 1, now); err != nil {
			t.Fatal(err)
		}
		if err := end(o); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{o.Add("pen", 1, 1, now), o.Ship(now), o.Cancel(now)} {
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestInvalidInputNamesEachField(t *testing.T) {
	if err := order.CheckCustomer(" "); !fault.Is(err, fault.Invalid) {
		t.Errorf("an empty name: %v", err)
	}
	err := place(t).Add("", 0, -1, now)
	for _, field := range []string{"/sku", "/pieces", "/price"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v; want a fault for %s", err, field)
		}
	}
}
